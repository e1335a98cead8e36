//! Files that Kubernetes mounts and updates: a `ConfigMap` with the configuration, a `Secret` with the
//! certificate of a listener.

use crate::kit::client::Client;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::renewal::pair;
use crate::tls::connect;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const RELOADED: &str = "config reloaded";
const REJECTED: &str = "config reload failed; keeping the previous config";
const RENEWED: &str = "TLS files reloaded; new connections use them";

/// A volume as the kubelet mounts it: each file is a link through `..data`, which points to a dated
/// folder. An update writes another folder, renames a new link over `..data`, and removes the old folder.
struct MountedVolume {
    root: PathBuf,
    updates: u32,
    _folder: Folder,
}

impl MountedVolume {
    fn mount(files: &[(&str, &str)]) -> Self {
        let folder = Folder::make();
        let marker = folder.write(".mounted", "");
        let root = Path::new(&marker).parent().unwrap().to_owned();
        let mut volume = Self {
            root,
            updates: 0,
            _folder: folder,
        };
        volume.update(files);
        for (name, _) in files {
            symlink(Path::new("..data").join(name), volume.root.join(name)).unwrap();
        }
        volume
    }

    fn update(&mut self, files: &[(&str, &str)]) {
        self.updates += 1;
        let dated = format!("..2026_11_18_12_00_{:02}.4711", self.updates);
        fs::create_dir(self.root.join(&dated)).unwrap();
        for (name, text) in files {
            fs::write(self.root.join(&dated).join(name), text).unwrap();
        }
        let (link, new) = (self.root.join("..data"), self.root.join("..data_tmp"));
        let old = fs::read_link(&link).ok();
        symlink(&dated, &new).unwrap();
        fs::rename(&new, &link).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(self.root.join(old)).unwrap();
        }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }
}

/// Returns a configuration whose first limit has this name and rate, on the listeners of `http`.
fn limit(http: &str, name: &str, rate: &str) -> String {
    format!(
        "listen: {{ http: {http}, admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: {name}, key: ip, rate: {rate} }}, {{ name: kept, key: user, missing: skip, rate: 1/h }}] }}]
"
    )
}

#[tokio::test]
async fn an_updated_config_map_is_reloaded_without_a_restart() {
    let config = |name, rate| limit("'127.0.0.1:0'", name, rate);
    let mut volume = MountedVolume::mount(&[("tidegate.yaml", &config("first", "100/min"))]);
    let file = volume.path("tidegate.yaml");
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    let http = process.address("http").await;
    process.address("admin").await;
    let mut client = Client::connect(http).await;
    let check = r#"{"ip": "192.0.2.1", "user": "ann"}"#;
    assert!(client.post(check).await.is_allowed());
    let refused = client.post(check).await;
    assert_eq!(refused.json()["limit"], "kept", "{}", refused.body);

    volume.update(&[("tidegate.yaml", &config("second", "7/h burst 9"))]);
    let line = process.logs(RELOADED, ("limits_added", "api/second")).await;
    assert_eq!(line["limits_removed"], "api/first", "{line}");
    // The same connection, and the same bucket of the limit that stays.
    let refused = client.post(check).await;
    assert_eq!(refused.json()["limit"], "kept", "{}", refused.body);
    let reply = client.post(r#"{"ip": "192.0.2.2"}"#).await;
    assert_eq!(reply.json()["band"], "7/h burst 9", "{}", reply.body);

    volume.update(&[("tidegate.yaml", &config("third", "fast"))]);
    process.logs(REJECTED, ("level", "ERROR")).await;
    let reply = client.post(r#"{"ip": "192.0.2.3"}"#).await;
    assert_eq!(reply.json()["band"], "7/h burst 9", "{}", reply.body);

    volume.update(&[("tidegate.yaml", &config("fourth", "3/h"))]);
    process.logs(RELOADED, ("limits_added", "api/fourth")).await;
    let reply = client.post(r#"{"ip": "192.0.2.4"}"#).await;
    assert_eq!(reply.json()["band"], "3/h", "{}", reply.body);
}

#[tokio::test]
async fn an_updated_secret_renews_the_certificate_of_a_listener() {
    let (old, new) = (pair(2031), pair(2032));
    let mut volume = MountedVolume::mount(&[("tls.crt", &old.0), ("tls.key", &old.1)]);
    let (cert, key) = (volume.path("tls.crt"), volume.path("tls.key"));
    let listener = format!("{{ address: '127.0.0.1:0', tls: {{ cert: '{cert}', key: '{key}' }} }}");
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", limit(&listener, "first", "100/min"));
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    let http = process.address("http").await;
    process.address("admin").await;
    let mut kept = connect(http, &old.0, None).await.unwrap();
    assert!(kept.post("{}").await.is_allowed());

    volume.update(&[("tls.crt", &new.0), ("tls.key", &new.1)]);
    process.logs(RENEWED, ("listener", "http")).await;
    assert!(connect(http, &old.0, None).await.is_err());
    let mut renewed = connect(http, &new.0, None).await.unwrap();
    assert!(renewed.post("{}").await.is_allowed());
    assert!(kept.post("{}").await.is_allowed());
}
