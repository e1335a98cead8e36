//! Inspects and resets buckets, like `tidegate inspect` and `tidegate reset`, in the store of this
//! server.

use crate::admin::api::Api;
use crate::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::admin::api::bodies::buckets::{BucketSelector, ResetReport, ResetRequest};
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::buckets::report::{self, BucketReport};
use crate::buckets::{
    BucketQuery, NamedBucket, policy_name, reset as bucket_reset, reset_all as limit_reset,
};
use crate::failure::Failure;
use serde_json::json;
use std::time::Duration;
use tidegate::{AnyStore, Config};
use tidegate_net::tasks;
use tokio::time::timeout;

/// The maximum time for resetting all buckets of a limit. After it, the response reports that the reset is
/// incomplete; another call can reset the rest.
const WALK_TIME: Duration = Duration::from_secs(30);

/// Inspects a bucket.
pub(in super::super) async fn inspect(
    api: &Api,
    _: &AdminCall,
    body: BucketSelector,
) -> ReplyResult<BucketReport> {
    let named = find(api, args(body)?).await?;
    let store = api.decider.limiter().store();
    let mut report = report::look_in(store, &named).await.map_err(refusal)?;
    report.note = note(store, report.found);
    Ok(AdminReply::ok(report))
}

/// Resets a bucket, or all buckets of a limit.
pub(in super::super) async fn reset(
    api: &Api,
    call: &AdminCall,
    body: ResetRequest,
) -> ReplyResult<ResetReport> {
    let is_dry = body.dry_run.unwrap_or_default();
    let args = args(body.selector)?;
    if body.all.unwrap_or_default() {
        return reset_all(api, call, (&args, is_dry)).await;
    }
    let named = find(api, args).await?;
    let store = api.decider.limiter().store();
    let reset = async {
        let forgotten = bucket_reset::forget_in(store, &named, is_dry).await;
        let forgotten = forgotten.map_err(|failure| lost(failure, (&named.shown(), is_dry)))?;
        let change = changed(&named.shown(), forgotten, true);
        Ok((forgotten, (!is_dry).then_some(change)))
    };
    let forgotten = api.change(call, reset).await?;
    let is_found = forgotten > 0;
    Ok(AdminReply::ok(ResetReport {
        bucket: named.bucket.clone(),
        found: is_found,
        forgotten,
        left: 0,
        complete: true,
        dry_run: is_dry,
        note: note(store, is_found),
    }))
}

/// Returns a warning if a client may be limited although nothing was found.
pub(super) fn note(store: &AnyStore, is_found: bool) -> Option<String> {
    let AnyStore::Memory(memory) = store else {
        return None;
    };
    let note = "the memory store is full, and clients without a bucket share overflow buckets, which \
        can be neither inspected nor reset; raise `store.max_keys`";
    (!is_found && memory.has_overflow()).then(|| note.to_owned())
}

async fn reset_all(
    api: &Api,
    call: &AdminCall,
    (args, is_dry): (&BucketQuery, bool),
) -> ReplyResult<ResetReport> {
    let Some(name) = &args.limit else {
        return Err(AdminProblem::invalid(
            "limit",
            "it is missing: `all` needs a limit",
        ));
    };
    if args.bucket.is_some() || !args.key.is_empty() || args.band.is_some() {
        let why = "`all` resets every bucket of the limit: send it without a bucket";
        return Err(AdminProblem::invalid("all", why));
    }
    let config = config(api).await?;
    let policy = policy_name(&config, args.policy.as_deref(), name).map_err(refusal)?;
    let limit = limit_reset::find(&config, &policy, name).map_err(refusal)?;
    let bucket = format!("{policy}/{name}/*");
    let reset = async {
        let busy =
            || AdminProblem::unavailable("too many calls of this kind are in progress: try again");
        let _walk = api.walks.try_acquire().map_err(|_| busy())?;
        let mut walk = limit_reset::ResetWalk::new(&config, &policy, limit, is_dry);
        let walked = timeout(WALK_TIME, walk.all_in(api.decider.limiter().store())).await;
        if matches!(walked, Ok(Ok(false))) {
            let why = "the store is `memory`, whose buckets are reset one by one";
            return Err(AdminProblem::invalid("all", why));
        }
        let is_complete = matches!(walked, Ok(Ok(_)));
        let counts = (walk.forgotten, walk.left, is_complete);
        if let (Ok(Err(failure)), 0) = (walked, walk.forgotten) {
            return Err(lost(failure, (&bucket, is_dry)));
        }
        let change = changed(&bucket, walk.forgotten, is_complete);
        Ok((counts, (!is_dry).then_some(change)))
    };
    let (forgotten, left, is_complete) = api.change(call, reset).await?;
    Ok(AdminReply::ok(ResetReport {
        bucket,
        found: forgotten > 0,
        forgotten,
        left,
        complete: is_complete,
        dry_run: is_dry,
        note: None,
    }))
}

/// Reports a reset that failed. If only the reply was lost, the reset may have been done.
fn lost(failure: Failure, (bucket, is_dry): (&str, bool)) -> AdminProblem {
    let may_be_done = !is_dry && matches!(failure, Failure::Runtime(_));
    let refusal = refusal(failure);
    if may_be_done {
        return refusal.with_change(AuditOutcome::Unknown, changed(bucket, 0, false));
    }
    refusal
}

fn changed(bucket: &str, forgotten: u64, is_complete: bool) -> AuditedChange {
    AuditedChange {
        target: format!("bucket/{bucket}"),
        before: json!({ "buckets": forgotten }),
        after: json!({ "complete": is_complete }),
    }
}

/// Returns the description of the selected bucket.
fn args(selector: BucketSelector) -> Result<BucketQuery, AdminProblem> {
    let key = selector.key.unwrap_or_default().into_iter();
    let args = BucketQuery {
        bucket: selector.bucket,
        policy: selector.policy,
        limit: selector.limit,
        band: selector.band,
        key: key.map(|(name, value)| format!("{name}={value}")).collect(),
    };
    let whose = [
        args.policy.is_some(),
        args.limit.is_some(),
        !args.key.is_empty(),
    ];
    match (&args.bucket, &args.limit) {
        (Some(_), _) if whose.contains(&true) => {
            let why =
                "name the bucket either by `bucket` or by `policy`, `limit` and `key`, not by both";
            Err(AdminProblem::invalid("bucket", why))
        }
        (None, None) => Err(AdminProblem::invalid(
            "bucket",
            "it is missing: send `bucket`, or `limit`",
        )),
        _ => Ok(args),
    }
}

async fn find(api: &Api, args: BucketQuery) -> Result<NamedBucket, AdminProblem> {
    let mut config = config(api).await?;
    // This may look a rate up in plans, which can take any time.
    let found = tasks::blocking(move || NamedBucket::find(&mut config, &args));
    let found = found.await.ok_or_else(AdminProblem::internal)?;
    let mut named = found.map_err(refusal)?;
    let store = api.decider.limiter().store();
    named.choose(store).await.map_err(refusal)?;
    Ok(named)
}

/// Returns the current configuration.
pub(super) async fn config(api: &Api) -> Result<Config, AdminProblem> {
    let config = api.composer.config().await;
    config.map_err(|refused| AdminProblem::unavailable(refused.to_string()))
}

/// Reports that the request is invalid, or that the store does not answer.
pub(super) fn refusal(failure: Failure) -> AdminProblem {
    match failure {
        Failure::Input(why) => {
            let (message, help) = match why.split_once("\n   help: ") {
                Some((message, help)) => (message, Some(help)),
                None => (why.as_str(), None),
            };
            let refusal = AdminProblem::invalid_body();
            refusal.with_help("body", message, help)
        }
        failure => AdminProblem::unavailable(failure.to_string()),
    }
}
