//! Routers of Traefik that take each other's requests, or seem to.

use tidegate_import::{SourceFile, traefik_ratelimit};

fn translated(routers: &str) -> String {
    let text = format!(
        "
http:
  routers:
{routers}
  middlewares:
    slow: {{ rateLimit: {{ average: 100, burst: 50 }} }}
    to-https: {{ redirectScheme: {{ scheme: https }} }}
"
    );
    let file = SourceFile {
        name: "dynamic.yaml".to_owned(),
        text,
    };
    let imported = traefik_ratelimit(&file).unwrap_or_else(|errors| panic!("{errors}"));
    imported.to_yaml()
}

#[test]
fn a_redirect_on_another_entry_point_removes_no_limit() {
    for (web, secure) in [
        ("entryPoints: [web], ", "entryPoints: [websecure], "),
        ("", "tls: {}, "),
        ("", "tls: { certResolver: le }, "),
    ] {
        let yaml = translated(&format!(
            "
    app: {{ rule: 'Host(`shop.example`)', {web}middlewares: [to-https], service: a }}
    app-secure: {{ rule: 'Host(`shop.example`)', {secure}middlewares: [slow], service: a }}"
        ));
        assert!(yaml.contains("rate: 100/s burst 50"), "{yaml}");
        assert!(!yaml.contains("replaces"), "{yaml}");
        assert!(!yaml.contains("unlimited"), "{yaml}");
    }
}

#[test]
fn an_earlier_router_of_the_same_entry_point_keeps_its_requests() {
    let yaml = translated(
        "
    open: { rule: 'Host(`shop.example`) && PathPrefix(`/open`)', middlewares: [to-https], service: a }
    all: { rule: 'Host(`shop.example`)', middlewares: [slow], service: a }",
    );
    assert!(yaml.contains("unlimited"), "{yaml}");
}

#[test]
fn a_router_with_an_unknown_middleware_removes_no_limit() {
    let yaml = translated(
        "
    open: { rule: 'Host(`shop.example`) && PathPrefix(`/open`)', middlewares: [elsewhere@docker], service: a }
    all: { rule: 'Host(`shop.example`)', middlewares: [slow], service: a }",
    );
    assert!(!yaml.contains("replaces"), "{yaml}");
    assert!(
        yaml.contains("middleware `elsewhere@docker`") || yaml.contains("elsewhere@docker"),
        "{yaml}"
    );
}

#[test]
fn chains_that_contain_themselves_and_deep_rules_end() {
    let rule = format!("{}Host(`a`){}", "(".repeat(100_000), ")".repeat(100_000));
    let yaml = translated(&format!(
        "
    deep: {{ rule: '{rule}', middlewares: [slow], service: a }}
    loop: {{ rule: 'Host(`b`)', middlewares: [slow], service: a }}"
    ));
    assert!(yaml.contains("not translated"), "{yaml}");
}
