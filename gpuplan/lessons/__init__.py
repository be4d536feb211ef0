"""The course: exercises whose right answers are computed, and the glossary.

- `answers`: what people write ("6 GPU-hours", "33 %", 0.33) as a number with its unit.
- `exercise`: the kinds of exercises, and what is said to an answer.
- `lesson_01` ... `lesson_06`: the exercises of each notebook; `course` lists them.
- `glossary`: the terms of the field, in a sentence each.
"""
