//! Order of merged lists (`normalizeElementOrder` of `strategicpatch/patch.go`).

use serde_json::Value;

/// Sorts the items of a merged list: items of the patch in the order of the patch, and items of the
/// server between them, in the order of the server.
///
/// `is_same` compares an item with an entry of an order.
pub(crate) fn sort_by_order(
    items: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    is_same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let position = |order: &[Value], item: &Value| order.iter().position(|entry| is_same(item, entry));
    let (mut patched, mut others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| position(patch_order, item).is_some());
    patched.sort_by_key(|item| position(patch_order, item));
    others.sort_by_key(|item| position(server_order, item).unwrap_or(usize::MAX));
    let mut sorted = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in patched {
        let is_before = |other: &Value| match (position(server_order, other), position(server_order, &item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        while let Some(other) = others.next_if(is_before) {
            sorted.push(other);
        }
        sorted.push(item);
    }
    sorted.extend(others);
    sorted
}
