//! Inspects and resets buckets, like `tidegate inspect` and `tidegate reset`, in the store of this
//! server.

use crate::commands::bucket::{BucketArgs, NamedBucket, policy_name};
use crate::commands::inspect::look;
use crate::commands::reset::{all, one};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::respond::{AdminProblem, Done, ProblemCollector};
use crate::failure::Failure;
use crate::tasks;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tidegate::{AnyStore, Config};
use tokio::time::timeout;

/// The maximum time for resetting all buckets of a limit. After it, the response reports that the reset is
/// incomplete; another call can reset the rest.
const WALK_TIME: Duration = Duration::from_secs(30);

/// The maximum number of parts of a key.
const PARTS_MAX: usize = 16;

/// Inspects a bucket.
pub(in super::super) async fn inspect(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let mut wrong = ProblemCollector::default();
    wrong.take(call.only(&["bucket", "policy", "limit", "key", "band"]));
    let args = args(call, wrong)?;
    let named = find(api, args).await?;
    let store = api.decider.limiter().store();
    let sight = match store {
        AnyStore::Redis(store) => look::look(store, &named).await,
        store => look::look_in_process(store, &named).await,
    };
    let mut sight = sight.map_err(refusal)?;
    sight.note = note(store, sight.found);
    let sight = serde_json::to_value(sight);
    Ok(Done::seen(sight.map_err(|_| AdminProblem::failed())?))
}

/// Resets a bucket, or all buckets of a limit.
pub(in super::super) async fn reset(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let mut wrong = ProblemCollector::default();
    wrong.take(call.only(&["bucket", "policy", "limit", "key", "band", "all", "dry_run"]));
    let is_dry = wrong.take(call.flag("dry_run")).unwrap_or(true);
    let is_all = wrong.take(call.flag("all")).unwrap_or_default();
    let args = args(call, wrong)?;
    if is_all {
        return reset_all(api, call, (&args, is_dry)).await;
    }
    let named = find(api, args).await?;
    let reset = async {
        let forgotten = match api.decider.limiter().store() {
            AnyStore::Redis(store) => one::forget(store, &named, is_dry).await,
            store => one::forget_in_process(store, &named, is_dry).await,
        };
        let forgotten = forgotten.map_err(|failure| lost(failure, (&named.shown(), is_dry)))?;
        let change = changed(&named.shown(), forgotten, true);
        Ok((forgotten, (!is_dry).then_some(change)))
    };
    let forgotten = api.change(call, reset).await?;
    let is_found = forgotten > 0;
    Ok(Done::seen(json!({
        "bucket": named.bucket,
        "found": is_found,
        "forgotten": forgotten,
        "left": 0,
        "complete": true,
        "dry_run": is_dry,
        "note": note(api.decider.limiter().store(), is_found),
    })))
}

/// Returns a warning if a client may be limited although nothing was found.
fn note(store: &AnyStore, is_found: bool) -> Option<String> {
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
    (args, is_dry): (&BucketArgs, bool),
) -> Result<Done, AdminProblem> {
    let Some(name) = &args.limit else {
        return Err(AdminProblem::senseless(
            "limit",
            "which limit is meant by `all`?",
        ));
    };
    if args.bucket.is_some() || !args.key.is_empty() || args.band.is_some() {
        let why = "all buckets are meant, or one: not both";
        return Err(AdminProblem::senseless("all", why));
    }
    let AnyStore::Redis(store) = api.decider.limiter().store() else {
        let why = "the store is `memory`, whose buckets are reset one by one";
        return Err(AdminProblem::senseless("all", why));
    };
    let config = config(api).await?;
    let policy = policy_name(&config, args.policy.as_deref(), name).map_err(refusal)?;
    let limit = all::find(&config, &policy, name).map_err(refusal)?;
    let Some(redis) = config.store.target.redis() else {
        return Err(AdminProblem::failed());
    };
    let bucket = format!("{policy}/{name}/*");
    let reset = async {
        let busy = || AdminProblem::away("others are at it: try again");
        let _walk = api.walks.try_acquire().map_err(|_| busy())?;
        let mut walk = all::ResetWalk::new(&config, &policy, limit, is_dry);
        let walking = walk.all(store.connection(), redis);
        let walked = timeout(WALK_TIME, walking).await;
        let is_complete = matches!(walked, Ok(Ok(())));
        let told = (walk.forgotten, walk.left, is_complete);
        if let (Ok(Err(failure)), 0) = (walked, walk.forgotten) {
            return Err(lost(failure, (&bucket, is_dry)));
        }
        let change = changed(&bucket, walk.forgotten, is_complete);
        Ok((told, (!is_dry).then_some(change)))
    };
    let (forgotten, left, is_complete) = api.change(call, reset).await?;
    Ok(Done::seen(json!({
        "bucket": bucket,
        "found": forgotten > 0,
        "forgotten": forgotten,
        "left": left,
        "complete": is_complete,
        "dry_run": is_dry,
        "note": null,
    })))
}

/// Reports a reset that failed. If only the reply was lost, the reset may have been done.
fn lost(failure: Failure, (bucket, is_dry): (&str, bool)) -> AdminProblem {
    let may_be_done = !is_dry && matches!(failure, Failure::Runtime(_));
    let refusal = refusal(failure);
    if may_be_done {
        return refusal.told(AuditOutcome::Unknown, changed(bucket, 0, false));
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

/// Returns the bucket that the call names, in the form of the command line's arguments, or all errors of
/// the call.
fn args(call: &AdminCall, mut wrong: ProblemCollector) -> Result<BucketArgs, AdminProblem> {
    let mut text = |name| wrong.take(call.text(name)).flatten().map(str::to_owned);
    let args = BucketArgs {
        bucket: text("bucket"),
        config: PathBuf::new(),
        policy: text("policy"),
        limit: text("limit"),
        band: text("band"),
        key: wrong.take(key(call)).unwrap_or_default(),
    };
    wrong.end()?;
    let whose = [
        args.policy.is_some(),
        args.limit.is_some(),
        !args.key.is_empty(),
    ];
    match (&args.bucket, &args.limit) {
        (Some(_), _) if whose.contains(&true) => {
            let why = "a bucket is told by its name, or by whose it is: not both";
            Err(AdminProblem::senseless("bucket", why))
        }
        (None, None) => Err(AdminProblem::senseless(
            "bucket",
            "which one? Or which `limit`?",
        )),
        _ => Ok(args),
    }
}

/// Returns the parts of the key: `{"ip": "192.0.2.1"}` becomes `ip=192.0.2.1`.
fn key(call: &AdminCall) -> Result<Vec<String>, AdminProblem> {
    let parts = match call.body.get("key") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(parts)) if parts.len() <= PARTS_MAX => parts,
        Some(_) => {
            let why =
                "expected an object with a text for each part, such as {\"ip\": \"192.0.2.1\"}";
            return Err(AdminProblem::senseless("key", why));
        }
    };
    let mut key = Vec::new();
    for (name, value) in parts {
        let Some(value) = value.as_str() else {
            return Err(AdminProblem::senseless(
                "key",
                "expected a text for each part",
            ));
        };
        key.push(format!("{name}={value}"));
    }
    Ok(key)
}

async fn find(api: &Api, args: BucketArgs) -> Result<NamedBucket, AdminProblem> {
    let mut config = config(api).await?;
    // This may look a rate up in plans, which can take any time.
    let found = tasks::blocking(move || NamedBucket::find(&mut config, &args));
    let found = found.await.ok_or_else(AdminProblem::failed)?;
    let mut named = found.map_err(refusal)?;
    let store = api.decider.limiter().store();
    named.choose(store).await.map_err(refusal)?;
    Ok(named)
}

/// Returns the current configuration.
pub(super) async fn config(api: &Api) -> Result<Config, AdminProblem> {
    let config = api.composer.config().await;
    config.map_err(|refused| AdminProblem::away(refused.to_string()))
}

/// Reports that the request is invalid, or that the store does not answer.
pub(super) fn refusal(failure: Failure) -> AdminProblem {
    match failure {
        Failure::Input(why) => {
            let (message, help) = match why.split_once("\n   help: ") {
                Some((message, help)) => (message, Some(help)),
                None => (why.as_str(), None),
            };
            let refusal = AdminProblem::new(422, "what was sent makes no sense");
            refusal.with_help("body", message, help)
        }
        Failure::Runtime(why) | Failure::NotFound(why) => AdminProblem::away(why),
    }
}
