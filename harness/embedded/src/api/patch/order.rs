//! The order of a merged list (`normalizeElementOrder` of `strategicpatch/patch.go`).

use serde_json::Value;

/// Items of the patch in the patch's order, and between them those that only the server has, in the server's order where both are known to it.
///
/// `same` tells whether an item is the one that an entry of an order stands for.
pub fn ordered(
    items: Vec<Value>,
    patched: &[Value],
    server: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let place = |order: &[Value], item: &Value| order.iter().position(|entry| same(item, entry));
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| place(patched, item).is_some());
    ours.sort_by_key(|item| place(patched, item));
    theirs.sort_by_key(|item| place(server, item).unwrap_or(usize::MAX));
    let mut all = Vec::with_capacity(ours.len() + theirs.len());
    let mut theirs = theirs.into_iter().peekable();
    for item in ours {
        let before = |other: &Value| match (place(server, other), place(server, &item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        while let Some(other) = theirs.next_if(before) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(theirs);
    all
}
