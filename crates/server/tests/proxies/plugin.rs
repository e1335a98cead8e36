//! The Traefik plugin's check requests.

use crate::kit::{FailureMode, Setup, Site};

/// The settings of the keeper plugin, as its users have them.
const KEEPER: &str = r#"          keeperRateLimitKey: ratelimits
          keeperURL: https://keeper.example
          keeperReqTimeout: 100s
          keeperAdminPassword: Pas$w0rd
          keeperReloadInterval: 45s
          ratelimitData: |
            {
              "limits": [
                {
                  "rules": [
                    {"urlpathpattern": "/api/v2/merchants/*/users/*/payments/methods$"},
                  ],
                  "limit": 1000
                },
              ]
            }
"#;

/// Opens a site whose middleware also has these settings.
fn with(settings: &str) -> Option<Site> {
    Site::start_with(Setup::TraefikPlugin, FailureMode::Open, |folder| {
        let name = "        tidegate:\n";
        folder.change("dynamic.yml", name, &format!("{name}{settings}"));
    })
}

#[test]
fn settings_of_keeper_are_accepted_and_never_printed() {
    let Some(mut site) = with(KEEPER) else {
        return;
    };
    site.await_status(|status| status != 404);
    site.use_up(2);
    let log = site.log();
    let expected = "Limits are those of Tidegate's configuration, and hold over all replicas";
    assert_eq!(log.matches(expected).count(), 1, "{log}");
    assert!(!log.contains("Pas$w0rd"), "{log}");
    assert!(!log.contains("urlpathpattern"), "{log}");
}

#[test]
fn a_misspelt_plugin_setting_is_reported_and_nothing_is_served() {
    let Some(mut site) = with("          onFailur: deny\n") else {
        return;
    };
    site.await_log("unknown settings: onFailur");
    site.await_status(|status| status == 404);
    assert_eq!(site.application.asked(), [""; 0]);
}

#[test]
fn an_invalid_plugin_setting_is_reported_and_nothing_is_served() {
    let Some(mut site) = with("          policy: ../check\n") else {
        return;
    };
    site.await_log("expected the name of a policy");
    site.await_status(|status| status == 404);
    assert_eq!(site.application.asked(), [""; 0]);
}

#[test]
fn an_unknown_policy_is_reported() {
    let Some(mut site) = with("          policy: nobodys\n") else {
        return;
    };
    site.await_status(|status| status == 200);
    site.await_log("does it have the policy that `policy` names");
}
