//! Drawing of timelines as SVG: available amount of the node above, usage of each container below.

use maud::{Markup, html};

use super::axis::Axis;
use super::model::{EventMark, Point, Timeline, TimelineSeries};
use super::unit::Unit;

/// Style sheet for light and dark mode. The container colors are the color-blind safe palette of
/// Okabe and Ito.
pub(crate) const STYLE: &str = "\
.timeline{font:12px system-ui,sans-serif;--text:#1f2328;--soft:#59636e;--line:#d1d9e0;--alarm:#cf222e;--band:#cf222e1c}\
.timeline text{fill:var(--soft)}.timeline .name{fill:var(--text)}\
.timeline .grid{stroke:var(--line);stroke-width:1}.timeline .left{stroke:var(--text)}\
.timeline path{fill:none;stroke-width:2;stroke-linejoin:round}\
.timeline .bound{stroke:var(--alarm);stroke-width:1.5;stroke-dasharray:6 4}.timeline .alarm{fill:var(--alarm)}\
.timeline .band{fill:var(--band)}.timeline .mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3}\
.timeline .hover{fill:transparent}.timeline .hover:hover{fill:#8886}\
.timeline .c0{stroke:#0072b2}.timeline .c1{stroke:#d55e00}.timeline .c2{stroke:#009e73}.timeline .c3{stroke:#cc79a7}\
.timeline .c4{stroke:#e69f00}.timeline .c5{stroke:#56b4e9}.timeline .c6{stroke:#b5a400}.timeline .c7{stroke:#888}\
@media(prefers-color-scheme:dark){.timeline{--text:#e6edf3;--soft:#9198a1;--line:#3d444d;--alarm:#ff7b72;--band:#ff7b7226}}";

const WIDTH: f64 = 760.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 748.0;
/// Height of each of the two charts.
const CHART_HEIGHT: f64 = 120.0;
/// Height of a line of text.
const LINE_HEIGHT: f64 = 15.0;
/// Number of text lines over which the labels of marks are distributed.
const MARK_ROWS: usize = 3;
const COLORS: usize = 8;

/// Draws a timeline as an SVG file with its style sheet.
pub(crate) fn standalone_svg(timeline: &Timeline) -> String {
    draw(timeline, true).into_string()
}

/// Draws a timeline for a page that contains [`STYLE`].
pub(crate) fn inline_svg(timeline: &Timeline) -> Markup {
    draw(timeline, false)
}

fn draw(timeline: &Timeline, standalone: bool) -> Markup {
    // Labels of the marks, then the title of the chart.
    let top = 8.0 + LINE_HEIGHT * (MARK_ROWS + 1) as f64;
    let available = Chart::available(timeline, top);
    let used_top = available.as_ref().map_or(top, |part| part.bottom + 2.0 * LINE_HEIGHT);
    let used = Chart::used(timeline, used_top);
    let bottom = used.as_ref().or(available.as_ref()).map_or(top, |part| part.bottom);
    let names = timeline.used.len() as f64;
    let height = bottom + 2.0 * LINE_HEIGHT + LINE_HEIGHT * (names / 3.0).ceil() + 6.0;
    let time = Axis::from_zero([timeline.end].into_iter(), (LEFT, RIGHT));
    html! {
        svg.timeline xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-label=(label(timeline)) {
            @if standalone { style { (STYLE) } }
            @for t in time.time_ticks() {
                line.grid x1=(time.position(t)) x2=(time.position(t)) y1=(top) y2=(bottom) {}
                text x=(time.position(t)) y=(bottom + LINE_HEIGHT) text-anchor="middle" { (t) " s" }
            }
            @for period in &timeline.conditions {
                rect.band x=(time.position(period.from)) y=(top) width=(time.distance(period.from, period.to))
                    height=(bottom - top) { title { (period.name) " from " (seconds(period.from)) " to " (seconds(period.to)) } }
                text.alarm x=(time.position(period.from) + 3.0) y=(bottom - 4.0) { (period.name) }
            }
            @if let Some(part) = &available {
                (part.frame(timeline.unit))
                path.left d=(part.path(time, &timeline.available)) {}
                @for bound in &timeline.thresholds {
                    @let y = part.axis.position(bound.value);
                    line.bound x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
                    text.alarm x=(RIGHT) y=(y - 4.0) text-anchor="end" { (bound.name) " " (timeline.unit.format(bound.value)) }
                }
            }
            @if let Some(part) = &used {
                (part.frame(timeline.unit))
                @for (place, series) in timeline.used.iter().enumerate() {
                    path class=(color(place)) d=(part.path(time, &series.points)) {}
                }
            }
            @for (place, mark) in timeline.marks.iter().enumerate() { (draw_mark(mark, place, time, bottom)) }
            @for (t, from, to) in moments(timeline) {
                rect.hover x=(time.position(from)) y=(top) width=(time.distance(from, to).max(0.5)) height=(bottom - top) {
                    title { (tooltip(timeline, t)) }
                }
            }
            @for (place, series) in timeline.used.iter().enumerate() {
                @let (x, y) = (LEFT + 232.0 * (place % 3) as f64, bottom + LINE_HEIGHT * (2.0 + (place / 3) as f64));
                line class=(color(place)) x1=(x) x2=(x + 16.0) y1=(y + 2.0) y2=(y + 2.0) stroke-width="3" {}
                text.name x=(x + 21.0) y=(y + 6.0) { (series.name) }
            }
        }
    }
}

/// One of the two charts.
struct Chart {
    axis: Axis,
    top: f64,
    bottom: f64,
    name: String,
}

impl Chart {
    fn available(timeline: &Timeline, top: f64) -> Option<Self> {
        let signal = timeline.signal.filter(|_| !timeline.available.is_empty())?;
        let figures = timeline.available.iter().map(|point| point.value);
        let all = figures.chain(timeline.thresholds.iter().map(|bound| bound.value));
        let bottom = top + CHART_HEIGHT;
        Some(Self { axis: Axis::around(all, (bottom, top)), top, bottom, name: signal.to_string() })
    }

    fn used(timeline: &Timeline, top: f64) -> Option<Self> {
        let figures = timeline.used.iter().flat_map(|series| &series.points).map(|point| point.value);
        let bottom = top + CHART_HEIGHT;
        let name = if timeline.used.iter().any(|one| one.name.contains('/')) { "container" } else { "pod" };
        let name = format!("used by each {name}");
        (!timeline.used.is_empty()).then(|| Self {
            axis: Axis::from_zero(figures, (bottom, top)),
            top,
            bottom,
            name,
        })
    }

    /// Draws grid lines, tick labels and title.
    fn frame(&self, unit: Unit) -> Markup {
        html! {
            @for (value, label) in self.axis.ticks(unit) {
                @let y = self.axis.position(value);
                line.grid x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
                text x=(LEFT - 6.0) y=(y + 4.0) text-anchor="end" { (label) }
            }
            text.name x=(LEFT) y=(self.top - 4.0) { (self.name) }
        }
    }

    /// Path data of a line through `points`.
    fn path(&self, time: Axis, points: &[Point]) -> String {
        let places = points
            .iter()
            .map(|point| format!("{} {}", time.position(point.t), self.axis.position(point.value)));
        format!("M{}", places.collect::<Vec<_>>().join("L"))
    }
}

fn draw_mark(mark: &EventMark, place: usize, time: Axis, bottom: f64) -> Markup {
    let x = time.position(mark.t);
    let y = LINE_HEIGHT * (place % MARK_ROWS + 1) as f64;
    // The label of a late mark is on the left of its line.
    let (beside, anchor) = if x > WIDTH * 0.6 { (x - 4.0, "end") } else { (x + 4.0, "start") };
    html! {
        line.mark x1=(x) x2=(x) y1=(y - 9.0) y2=(bottom) {}
        text.name x=(beside) y=(y) text-anchor=(anchor) { (mark.text) " " (seconds(mark.t)) }
    }
}

/// Times of all measurements, each with the start and end of the period closest to it.
fn moments(timeline: &Timeline) -> Vec<(f64, f64, f64)> {
    let points = timeline.used.iter().flat_map(|series| &series.points).chain(&timeline.available);
    let mut times: Vec<f64> = points.map(|point| point.t).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let middle = |place: usize| (times[place] + times[place + 1]) / 2.0;
    let last = times.len().saturating_sub(1);
    let span = |(place, t): (usize, &f64)| {
        let from = if place == 0 { *t } else { middle(place - 1) };
        (*t, from, if place == last { timeline.end } else { middle(place) })
    };
    times.iter().enumerate().map(span).collect()
}

/// All values at a time, as text.
fn tooltip(timeline: &Timeline, t: f64) -> String {
    let at = |points: &[Point]| points.iter().find(|point| point.t == t).map(|point| point.value);
    let mut lines = vec![seconds(t)];
    if let (Some(signal), Some(value)) = (timeline.signal, at(&timeline.available)) {
        lines.push(format!("{signal} {}", timeline.unit.format(value)));
    }
    let line = |series: &TimelineSeries| {
        Some(format!("{} {}", series.name, timeline.unit.format(at(&series.points)?)))
    };
    lines.extend(timeline.used.iter().filter_map(line));
    lines.join("\n")
}

/// Text alternative of the image.
fn label(timeline: &Timeline) -> String {
    let marks = timeline.marks.iter().map(|mark| format!("{} at {}", mark.text, seconds(mark.t)));
    let what = timeline.signal.map_or("used storage".to_owned(), |signal| signal.to_string());
    let all: Vec<String> = [what].into_iter().chain(marks).collect();
    all.join(", ")
}

fn seconds(t: f64) -> String {
    format!("{t:.1} s")
}

fn color(place: usize) -> String {
    format!("c{}", place % COLORS)
}

#[cfg(test)]
mod tests {
    use evictlab_rules::threshold::Signal;

    use super::super::model::{ConditionPeriod, ThresholdLine};
    use super::*;

    fn timeline() -> Timeline {
        let mi = evictlab_rules::quantity::MIB as f64;
        let points = |values: [f64; 3]| {
            (0..).zip(values).map(|(t, value)| Point { t: f64::from(t) * 2.0, value: value * mi }).collect()
        };
        Timeline {
            signal: Some(Signal::MemoryAvailable),
            unit: Unit::Bytes,
            available: points([800.0, 500.0, 250.0]),
            thresholds: vec![ThresholdLine { name: "threshold".to_owned(), value: 300.0 * mi }],
            used: vec![
                TimelineSeries { name: "hog/<el1>".to_owned(), points: points([10.0, 310.0, 560.0]) },
                TimelineSeries { name: "hog/el2".to_owned(), points: points([10.0, 10.0, 10.0]) },
            ],
            conditions: vec![ConditionPeriod { name: "MemoryPressure".to_owned(), from: 3.5, to: 5.0 }],
            marks: vec![
                EventMark { t: 0.4, text: "hog running".to_owned() },
                EventMark { t: 4.5, text: "hog evicted".to_owned() },
            ],
            end: 5.0,
        }
    }

    #[test]
    fn draws_a_timeline() {
        insta::assert_snapshot!(inline_svg(&timeline()).into_string().replace("><", ">\n<"));
    }

    #[test]
    fn standalone_svg_has_a_style_and_is_well_formed() {
        let svg = standalone_svg(&timeline());
        assert!(svg.contains("<style>") && svg.contains("prefers-color-scheme:dark"));
        assert!(svg.contains("hog/&lt;el1&gt;"), "names are text");
        let mut open: Vec<&str> = Vec::new();
        for tag in svg.split('<').skip(1).filter_map(|part| part.split(['>', ' ']).next()) {
            match tag.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop(), Some(closed)),
                None => open.push(tag),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn draws_a_timeline_without_values() {
        let nothing = Timeline { available: vec![], thresholds: vec![], used: vec![], ..timeline() };
        assert!(inline_svg(&nothing).into_string().contains("hog evicted"));
    }
}
