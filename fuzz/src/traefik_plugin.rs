//! Any text as what a Traefik plugin is told: translated or refused, and nothing panics either way.
//!
//! How: what is refused must say why, and where. What is translated must be policies that load as they
//! are, and what a keeper falls back on must be a document of limits that says the same.

use tidegate_policy::Config;
use tidegate_policy::import::{LimitsOptions, SourceFile, traefik_plugin, traefik_plugin_limits};
use tidegate_policy::source::{NamedText, PolicyOrigin};

fuzz_target!(|text: &str| {
    let options = LimitsOptions::default();
    match traefik_plugin_limits("fuzz", text, &options) {
        Ok(imported) => {
            let part = imported.to_part();
            Config::from_yaml(&part).unwrap_or_else(|errors| panic!("{errors}\nin\n{part}"));
        }
        Err(errors) => {
            assert!(errors.count() > 0, "refused without a reason");
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
