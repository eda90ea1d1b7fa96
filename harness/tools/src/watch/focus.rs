//! Part of a watched cluster that the user looks at.

use super::keyboard::Key;
use super::state::WatchState;

/// Selection in the live view. Names are kept, not positions: lines move with every reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Focus {
    /// True if keys can be used.
    pub(super) has_keys: bool,
    /// The selected node; `None` until a key selects one.
    pub(super) node: Option<String>,
    /// The selected pod by UID, if the view shows only its node.
    pub(super) pod: Option<String>,
    /// True if the view shows only the selected node.
    pub(super) is_open: bool,
}

/// Number of lines that a page key moves.
const PAGE: usize = 10;

impl Focus {
    /// Moves the selection.
    pub(super) fn apply(&mut self, key: Key, state: &WatchState) {
        match key {
            Key::Open if self.is_open => {}
            Key::Open => {
                self.node = self.node.take().or_else(|| state.nodes.keys().next().cloned());
                self.is_open = self.node.is_some();
            }
            // From the node to the list, and from the list to the nodes nearest to a threshold.
            Key::Close if self.is_open => (self.is_open, self.pod) = (false, None),
            Key::Close => self.node = None,
            Key::NextSignal | Key::PreviousSignal | Key::Quit => {}
            _ if self.is_open => {
                let pods = self.pods(state);
                self.pod = moved(&pods, self.pod.as_deref(), key);
            }
            _ => {
                let nodes: Vec<&str> = state.nodes.keys().map(String::as_str).collect();
                self.node = moved(&nodes, self.node.as_deref(), key);
            }
        }
    }

    /// Returns the UIDs of the pods of the selected node, in the order of the view.
    fn pods<'a>(&self, state: &'a WatchState) -> Vec<&'a str> {
        let view = self.node.as_ref().and_then(|node| state.nodes.get(node));
        let reading = view.and_then(|view| view.reading.as_ref());
        let order = reading.iter().flat_map(|reading| reading.order.iter().map(|pod| pod.uid.as_str()));
        order
            .chain(reading.iter().flat_map(|reading| reading.exempt.iter().map(|pod| pod.uid.as_str())))
            .collect()
    }
}

/// Returns the name that a key selects after `selected`. Without a selected one, every key but
/// `End` selects the first.
fn moved(names: &[&str], selected: Option<&str>, key: Key) -> Option<String> {
    let last = names.len().checked_sub(1)?;
    let place = selected.and_then(|selected| names.iter().position(|name| *name == selected));
    let place = match (key, place) {
        (Key::End, _) => last,
        (Key::Home, _) | (_, None) => 0,
        (Key::Up, Some(place)) => place.saturating_sub(1),
        (Key::Down, Some(place)) => place + 1,
        (Key::PageUp, Some(place)) => place.saturating_sub(PAGE),
        (Key::PageDown, Some(place)) => place + PAGE,
        (_, Some(place)) => place,
    };
    Some(names[place.min(last)].to_owned())
}

/// Returns the first of `rows` lines of a list of `length` so that the line `selected` is visible,
/// near the middle.
pub(super) fn first_visible(length: usize, selected: Option<usize>, rows: usize) -> usize {
    let Some(selected) = selected else { return 0 };
    selected.saturating_sub(rows / 2).min(length.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_within_the_list() {
        let names = ["a", "b", "c"];
        for (selected, key, expected) in [
            (None, Key::Down, "a"),
            (None, Key::End, "c"),
            (Some("a"), Key::Down, "b"),
            (Some("c"), Key::Down, "c"),
            (Some("a"), Key::Up, "a"),
            (Some("c"), Key::PageUp, "a"),
            (Some("a"), Key::PageDown, "c"),
            // The selected one is gone.
            (Some("x"), Key::Down, "a"),
        ] {
            assert_eq!(moved(&names, selected, key).as_deref(), Some(expected), "{selected:?} {key:?}");
        }
        assert_eq!(moved(&[], Some("x"), Key::Down), None);
    }

    #[test]
    fn selected_line_is_visible() {
        for (length, selected, rows, expected) in [
            (100, None, 10, 0),
            (100, Some(3), 10, 0),
            (100, Some(50), 10, 45),
            (100, Some(99), 10, 90),
            (5, Some(4), 10, 0),
        ] {
            assert_eq!(first_visible(length, selected, rows), expected, "{selected:?} of {length}");
        }
    }
}
