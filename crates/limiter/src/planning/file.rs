//! Plans in a file.

use super::keep::{FilePlans, LoadPlans, LoadedPlans};
use crate::files::read_text;
use std::future::Future;
use std::path::Path;
use tidegate_policy::plan::{PlanDocument, PlanOrigin, PlanSource};

/// The maximum size of a file of plans to read: more than the parser accepts, so that the parser's error is
/// reported.
const BYTES_MAX: u64 = 257 << 20;

impl LoadPlans for FilePlans {
    fn load(
        &self,
        source: &PlanSource,
        tag: Option<&str>,
        hides_subjects: bool,
    ) -> impl Future<Output = Result<LoadedPlans, String>> + Send {
        let (origin, tag) = (source.origin.clone(), tag.map(str::to_owned));
        let kind = source.kind();
        async move {
            let PlanOrigin::File(path) = origin else {
                return Err(format!("this program loads no plans from `{kind}`"));
            };
            // Reading a file may block without bound, and many subjects take a while to parse.
            let read = move || read(&path, tag.as_deref(), hides_subjects);
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|_| Err("reading it came to no end".to_owned()))
        }
    }
}

fn read(path: &str, tag: Option<&str>, hides_subjects: bool) -> Result<LoadedPlans, String> {
    let wrong = |error: std::io::Error| format!("cannot read {path}: {error}");
    let text = read_text(Path::new(path), BYTES_MAX).map_err(wrong)?;
    let now = blake3::hash(text.as_bytes()).to_hex().to_string();
    if tag == Some(now.as_str()) {
        return Ok(LoadedPlans::Unchanged);
    }
    let document = PlanDocument::read(&text, hides_subjects).unwrap_or_else(PlanDocument::from);
    Ok(LoadedPlans::Changed {
        document: document.named(path),
        tag: Some(now),
    })
}
