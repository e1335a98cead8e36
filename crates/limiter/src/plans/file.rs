//! Plans in a file.

use super::load::{FilePlans, LoadPlans, LoadedPlans};
use std::future::Future;
use std::path::Path;
use tidegate_files::read_text;
use tidegate_policy::plan::{PlanDocument, PlanFormat};
use tidegate_policy::plan_source::{PlanOrigin, PlanSource};

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
        let (kind, format) = (source.kind(), source.format);
        async move {
            let PlanOrigin::File(path) = origin else {
                return Err(format!("this program loads no plans from `{kind}`"));
            };
            // Reading a file may block without bound, and many subjects take a while to parse.
            let read = move || read((&path, format), tag.as_deref(), hides_subjects);
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|_| Err("the read did not finish".to_owned()))
        }
    }
}

fn read(
    (path, format): (&str, PlanFormat),
    tag: Option<&str>,
    hides_subjects: bool,
) -> Result<LoadedPlans, String> {
    let wrong = |error: std::io::Error| format!("cannot read {path}: {error}");
    let text = read_text(Path::new(path), BYTES_MAX).map_err(wrong)?;
    let now = blake3::hash(text.as_bytes()).to_hex().to_string();
    if tag == Some(now.as_str()) {
        return Ok(LoadedPlans::Unchanged);
    }
    let document = parse(&text, format, hides_subjects).unwrap_or_else(PlanDocument::from);
    Ok(LoadedPlans::Changed {
        document: document.named(path),
        tag: Some(now),
    })
}

#[cfg(feature = "config")]
use tidegate_config::plans_in_format as parse;

/// Parses a document of plans: without the feature `config`, in JSON alone.
#[cfg(not(feature = "config"))]
fn parse(
    text: &str,
    format: PlanFormat,
    hides_subjects: bool,
) -> Result<PlanDocument, tidegate_policy::plan::PlanErrors> {
    PlanDocument::check_size(text)?;
    PlanDocument::from_json(text, format, hides_subjects).unwrap_or_else(|| {
        let why = "it is not JSON, and YAML takes the feature `config` of the crate `tidegate`";
        Err(tidegate_policy::plan::PlanErrors::one(why))
    })
}
