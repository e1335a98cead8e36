//! Changes of a tree before it is read.

use super::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};

/// Returns the value of the field `name`, inserting `kind` if it is missing.
pub(crate) fn at<'a>(
    entries: &'a mut Vec<MapEntry>,
    name: &str,
    place: TextSpan,
    kind: NodeKind,
) -> &'a mut YamlNode {
    let found = entries.iter().position(|entry| entry.key.text == name);
    let index = found.unwrap_or_else(|| {
        let key = MapKey {
            text: name.to_owned(),
            place,
        };
        let value = YamlNode { place, kind };
        entries.push(MapEntry { key, value });
        entries.len().saturating_sub(1)
    });
    #[expect(clippy::indexing_slicing, reason = "found, or just pushed")]
    &mut entries[index].value
}

/// Replaces a store that is written as a URL by a map with this `url`.
pub(crate) fn spell_out(store: &mut YamlNode) {
    let place = store.place;
    if !matches!(store.kind, NodeKind::Text(_)) {
        return;
    }
    let key = MapKey {
        text: "url".to_owned(),
        place,
    };
    let kind = std::mem::replace(&mut store.kind, NodeKind::Null);
    let value = YamlNode { place, kind };
    store.kind = NodeKind::Map(vec![MapEntry { key, value }]);
}
