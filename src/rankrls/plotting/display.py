"""The base class of all displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from .style import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """Numbers and their plot; a subclass defines `_draw`, which draws on `ax_`."""

    figure_: Figure
    ax_: Any  # matplotlib's axes, whose type information lacks some keywords

    _size = (6.4, 4.0)  # size of a new figure in inches

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure. For several panels, also an array of axes, one per panel.

        Returns
        -------
        self
        """
        self._place(ax)
        self._draw()
        return self

    def _place(self, ax: Any) -> None:
        """Set `figure_` and `ax_`."""
        self.figure_, self.ax_ = axes(ax, self._size)

    def _draw(self) -> None:
        raise NotImplementedError
