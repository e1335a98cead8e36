"""The bars that the gateway is held to, and whether a run meets them.

Rounds are compared with the same round of the other, which was measured a moment before or after,
and the median of these is the figure: what drifts from round to round drops out.
"""

import dataclasses
import statistics

from proxies import BARE, OURS, OURS_TELLING, OURS_UNLIMITED, RIVAL


@dataclasses.dataclass
class Bar:
    """One figure of ours against another's."""

    text: str
    ours: str
    other: str
    compare: callable
    """Given a round of ours and one of the other's."""
    at_least: float = None
    at_most: float = None
    unit: str = "×"

    def says(self, rounds):
        """A line for people, and whether the bar is met (None: it could not be measured)."""
        pairs = list(zip(rounds.get(self.ours, []), rounds.get(self.other, [])))
        if not pairs:
            lacking = [name for name in (self.ours, self.other) if not rounds.get(name)]
            return f"{self.text}: not measured, for lack of {' and '.join(lacking)}", None
        values = [self.compare(*pair) for pair in pairs]
        value, low, high = statistics.median(values), min(values), max(values)
        figure = f"{self.text}: {value:.2f} {self.unit} (rounds {low:.2f} to {high:.2f})"
        if self.at_least is None and self.at_most is None:
            return figure, None
        if self.at_least is not None:
            met, bar = value >= self.at_least, f"≥ {self.at_least}"
        else:
            met, bar = value <= self.at_most, f"≤ {self.at_most}"
        return f"{figure}, {'met' if met else 'MISSED'}: {bar}", met


def _cheaper(ours, other):
    return other["cpu_us"] / ours["cpu_us"]


def _dearer(ours, other):
    return ours["cpu_us"] / other["cpu_us"]


def _more(ours, other):
    return ours["cpu_us"] - other["cpu_us"]


def _slower(ours, other):
    return ours["p99_ms"] / other["p99_ms"]


BARS = [
    Bar("as cheap as nginx + limit_req", OURS, RIVAL, _cheaper, at_least=0.9),
    Bar("as cheap as Envoy + local_ratelimit", OURS, "envoy-limit", _cheaper, at_least=2.0),
    Bar("as cheap as Traefik + RateLimit", OURS, "traefik-limit", _cheaper, at_least=3.0),
    Bar("as dear as a bare hyper proxy", OURS, BARE, _dearer, at_most=1.15),
    Bar("p99 against nginx + limit_req", OURS, RIVAL, _slower, at_most=1.5),
    Bar("the limit itself", OURS, OURS_UNLIMITED, _more, at_most=1.0, unit="µs"),
    Bar("telling of it in headers", OURS_TELLING, OURS, _more, unit="µs"),
    Bar("as cheap as HAProxy + stick table", OURS, "haproxy-limit", _cheaper),
    Bar("as cheap as nginx that tells upstream who asked", OURS, "nginx-limit-traces", _cheaper),
]


def verdicts(rounds, everybody):
    """Each bar, one after another, of those that `everybody` could be held to."""
    names = {each.name for each in everybody}
    return [(*bar.says(rounds), bar.text) for bar in BARS if {bar.ours, bar.other} <= names]
