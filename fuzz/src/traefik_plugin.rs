//! Any text as the configuration of a Traefik plugin: translated or rejected, and nothing panics.
//!
//! How: a rejection must have a reason and a position. A translation must be policies that load
//! unchanged, and the fallback of a keeper must be an equivalent document.

use tidegate_config::Config;
use tidegate_import::{LimitsOptions, SourceFile, traefik_plugin, traefik_plugin_limits};
use tidegate_config::compose::NamedText;
use tidegate_config::source::PolicyOrigin;

fuzz_target!(|text: &str| {
    let options = LimitsOptions::default();
    match traefik_plugin_limits("fuzz", text, &options) {
        Ok(imported) => {
            let part = imported.to_part();
            Config::from_yaml(&part).unwrap_or_else(|errors| panic!("{errors}\nin\n{part}"));
        }
        Err(errors) => {
            assert!(errors.count() > 0, "rejected without a reason");
            let is_here = |file: &str| file == "fuzz";
            assert!(
                errors.problems().iter().all(|it| is_here(it.file())),
                "{errors}"
            );
        }
    }
    let file = SourceFile {
        name: "fuzz".to_owned(),
        text: text.to_owned(),
    };
    let Ok(imported) = traefik_plugin(&file) else {
        return;
    };
    let yaml = imported.to_yaml();
    let own = NamedText {
        name: "fuzz",
        text: &yaml,
    };
    let environment = |name: &str| (name == "KEEPER_PASSWORD").then(|| "secret".to_owned());
    let sources = Config::sources_of(own, &environment);
    let sources = sources.unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"));
    for source in sources {
        let PolicyOrigin::Keeper(keeper) = source.origin else {
            continue;
        };
        if let Some(fallback) = keeper.fallback {
            let again = traefik_plugin_limits("fallback", &fallback, &options);
            again.unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"));
        }
    }
});
