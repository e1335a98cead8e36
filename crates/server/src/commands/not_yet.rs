//! What the language knows and this version does not have yet.

use tidegate_policy::Config;

/// A sentence for each thing that the configuration asks for in vain.
pub(super) fn not_yet(config: &Config) -> Vec<String> {
    let listen = &config.listen;
    let doors = [
        ("grpc", &listen.grpc),
        ("gateway", &listen.gateway),
        ("resp", &listen.resp),
    ];
    let doors = doors.into_iter().filter(|(_, listener)| listener.is_some());
    let mut sentences: Vec<String> = doors
        .map(|(name, _)| format!("this version does not have the door `{name}`; it stays closed"))
        .collect();
    if !config.store.url.is_memory() {
        let url = &config.store.url;
        sentences.push(format!(
            "this version does not have the store `{url}`, and does not serve without it; `memory` is the one that it has"
        ));
    }
    sentences
}
