"""The app: explorers and lessons as web pages for people without Python, each page with a kernel of its own."""
