//! Variables and files that a configuration names.

use std::fs;
use std::path::PathBuf;
use tidegate::{
    BuildError, Config, ConfigProblem, Environment, Limiter, NoEnvironment, ProcessEnvironment,
    Request,
};

/// A temporary directory, removed when the test has passed.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("tidegate-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Returns a configuration that needs a file, twice.
fn needy(secret: &str) -> String {
    format!(
        "store: {{ key_secret_file: \"{secret}\" }}
client: {{ user: {{ claim: sub }}, jwt: {{ secret_file: \"{secret}\" }} }}
policies: [{{ name: api, limits: [{{ name: x, key: api-key, rate: 1/s }}] }}]"
    )
}

#[test]
fn a_file_that_names_secrets_could_not_be_loaded_and_now_can() {
    let folder = Folder::new("secrets");
    let secret = folder.write("secret", "0123456789abcdef0123456789abcdef\n");
    let config = folder.write("limits.yaml", &needy(&secret.display().to_string()));

    let limiter = Limiter::from_file(&config).unwrap();
    let key = |limiter: &Limiter| {
        let decision = limiter.check_now(&Request::new().api_key("k")).unwrap();
        decision.binding().unwrap().key().to_owned()
    };
    let keyed = key(&limiter);
    // The secret took effect: without it, keys have a different hash.
    limiter
        .reload(
            Config::from_yaml(
                "policies: [{ name: api, limits: [{ name: x, key: api-key, rate: 1/s }] }]",
            )
            .unwrap(),
        )
        .unwrap();
    assert_ne!(key(&limiter), keyed);
    limiter.reload_file(&config).unwrap();
    assert_eq!(key(&limiter), keyed);
}

#[test]
fn a_reload_from_an_invalid_file_keeps_the_running_config() {
    let folder = Folder::new("bad");
    let good = "policies: [{ name: api, limits: [{ name: x, rate: 1/h }] }]";
    let config = folder.write("limits.yaml", good);
    let limiter = Limiter::from_file(&config).unwrap();
    limiter.check_now(&Request::new()).unwrap();

    fs::write(&config, "polices: []").unwrap();
    let error = limiter.reload_file(&config).unwrap_err();
    assert!(error.to_string().contains("limits.yaml:1"), "{error}");
    fs::remove_file(&config).unwrap();
    let error = limiter.reload_file(&config).unwrap_err();
    assert!(matches!(error, BuildError::Read { .. }));
    assert!(!limiter.check_now(&Request::new()).unwrap().is_allowed());
}

#[test]
fn a_config_from_text_reads_no_variables_and_reports_it() {
    let folder = Folder::new("text");
    let secret = folder.write("secret", "0123456789abcdef0123456789abcdef");
    let text = needy(&secret.display().to_string());

    let error = Limiter::from_yaml(&text).unwrap_err().to_string();
    assert!(error.contains("this environment has no "), "{error}");
    assert!(error.contains("`tidegate::ProcessEnvironment`"), "{error}");
    assert!(!error.contains("set it"), "{error}");

    let process = Limiter::builder().environment(ProcessEnvironment::new());
    assert!(process.yaml(&text).unwrap().build().is_ok());
}

#[test]
fn certificates_were_read_although_files_were_disabled() {
    let folder = Folder::new("certificates");
    let pem = folder.write("all.pem", "-----BEGIN PRIVATE KEY-----\n");
    let path = pem.display();
    let text = format!(
        "{{ url: 'rediss://db', redis: {{ tls: {{ ca: '{path}', cert: '{path}', key: '{path}' }} }} }}"
    );
    let errors = tidegate::store_from_yaml(&text, &NoEnvironment).unwrap_err();
    let paths: Vec<&str> = errors.problems().iter().map(ConfigProblem::path).collect();
    assert_eq!(paths, ["redis.tls.ca", "redis.tls.cert", "redis.tls.key"]);
    for problem in errors.problems() {
        let said = problem.to_string();
        assert!(said.starts_with("store:1:"), "{said}");
        assert!(said.contains("this environment has no "), "{said}");
    }
    let endless = "{ url: 'rediss://db', redis: { tls: { ca: /dev/zero } } }";
    let error = tidegate::store_from_yaml(endless, &ProcessEnvironment::new()).unwrap_err();
    assert!(error.to_string().contains("it is a device"), "{error}");
}

#[test]
fn certificates_of_a_store_are_read_once_and_never_shown() {
    let folder = Folder::new("identity");
    let pem = folder.write("all.pem", "hunter2\n");
    let path = pem.display();
    let text = format!(
        "{{ url: 'rediss://db', redis: {{ tls: {{ ca: '{path}', cert: '{path}', key: '{path}' }} }} }}"
    );
    let store = tidegate::store_from_yaml(&text, &ProcessEnvironment::new()).unwrap();
    drop(folder);
    let tls = store.target.redis().and_then(|redis| redis.tls.as_ref());
    let tls = tls.unwrap();
    assert_eq!(tls.ca.as_ref().unwrap().expose(), "hunter2");
    assert_eq!(tls.identity.as_ref().unwrap().key.expose(), "hunter2");
    assert!(!format!("{store:?} {tls:?}").contains("hunter2"));
}

#[test]
fn a_file_looks_up_variables_of_the_process() {
    let path = ProcessEnvironment::new().variable("PATH");
    let path = path.expect("the variable is set");
    let text = "policies: [{ name: api, limits: [{ name: x, match: { headers: { Path: '${PATH}' } }, rate: 1/s }] }]";
    let folder = Folder::new("variables");
    let limiter = Limiter::from_file(folder.write("limits.yaml", text)).unwrap();
    let met = |value: &str| {
        let headers = [("path", value)];
        let decision = limiter.check_now(&Request::new().headers(&headers));
        !decision.unwrap().is_unlimited()
    };
    assert!(met(&path));
    assert!(!met("${PATH}"));
}

#[test]
fn the_environment_is_the_callers_choice_for_files_too() {
    let folder = Folder::new("choice");
    let text = "policies: [{ name: api, limits: [{ name: x, rate: '${RATE}' }] }]";
    let config = folder.write("limits.yaml", text);

    let told = |name: &str| (name == "RATE").then(|| "7/s".to_owned());
    let builder = Limiter::builder().environment(told).file(&config).unwrap();
    let decision = builder.build().unwrap().check_now(&Request::new()).unwrap();
    assert_eq!(decision.binding().unwrap().band(), Some("7/s"));

    let nothing = Limiter::builder().environment(NoEnvironment).file(&config);
    let error = nothing.unwrap_err().to_string();
    assert!(error.contains("this environment has no "), "{error}");
}

#[test]
fn a_limiter_can_be_started_on_any_thread() {
    fn assert_send(_: impl Future + Send) {}
    let builder = Limiter::builder().environment(ProcessEnvironment::new());
    assert_send(builder.start());
}
