"""The cluster: GPUs in one line, cut into nodes, some of them unavailable."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cluster:
    """GPUs numbered 0 to ``gpus - 1`` in a line of equal nodes (the last node may be smaller).

    Parameters
    ----------
    gpus
        Number of GPUs, 1 to 16,384.
    gpus_per_node
        GPUs of a node; ``None`` puts all GPUs on one node.
    unavailable
        Numbers of GPUs that nobody may use, ascending.
    price_per_gpu_hour
        Price of one GPU for one hour in any currency; ``None`` leaves cost figures out.
    """

    gpus: int
    gpus_per_node: int | None = None
    unavailable: tuple[int, ...] = ()
    price_per_gpu_hour: float | None = None

    @property
    def node_size(self) -> int:
        """GPUs of a whole node, all GPUs where no node size is given."""
        return self.gpus if self.gpus_per_node is None else self.gpus_per_node

    @property
    def n_nodes(self) -> int:
        """Number of nodes, a smaller last one included."""
        return -(-self.gpus // self.node_size)

    @property
    def n_available(self) -> int:
        """Number of GPUs that may be used."""
        return self.gpus - len(self.unavailable)
