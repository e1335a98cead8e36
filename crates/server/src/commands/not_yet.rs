//! What the language knows and this version does not have yet.

use tidegate_policy::Config;

/// A sentence for each thing that the configuration asks for in vain.
pub(super) fn not_yet(config: &Config) -> Vec<String> {
    let listen = &config.listen;
    let doors = [("grpc", &listen.grpc), ("resp", &listen.resp)];
    let doors = doors.into_iter().filter(|(_, listener)| listener.is_some());
    doors
        .map(|(name, _)| format!("this version does not have the door `{name}`; it stays closed"))
        .collect()
}
