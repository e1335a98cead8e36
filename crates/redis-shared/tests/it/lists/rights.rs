//! A user with the permissions of counting and banning, and no others.

use super::kit::{AGES, HOUR, ROOMY, TestRedis, batch, run};
use crate::world;
use std::time::Duration;
use tidegate_redis_client::CallError;
use tidegate_redis_shared::{Bans, CensusLimits, CensusMap, LoadError, PeriodClose};
use tidegate_testkit::redis::{Acl, Server, until};

/// The rules for every connection and the keys.
const COMMON: &str = "~tg* ~{tg*}* resetchannels -@all +@connection +script|load +info +role";

fn rules(commands: &[&str]) -> String {
    let granted = commands.iter().map(|name| format!(" +{name}"));
    COMMON.to_owned() + &granted.collect::<String>()
}

/// Runs every command at least once, on empty data.
fn work(ground: &TestRedis) -> Result<(), CallError> {
    let unreached = |error| match error {
        LoadError::Call(error) => error,
        other => panic!("{other}"),
    };
    let set = ground.name("Blacklist");
    let limits = CensusLimits {
        period_max: 1,
        total_lasts: Some(HOUR),
        ..ROOMY
    };
    let mut census = ground.census(limits);
    let second = Duration::from_millis(1);
    run(census.close(second, HOUR))?;
    // More than there is room for.
    run(census.add(&mut batch(&[("a", 3), ("b", 2)])))?;
    let mut token = None;
    let mut failed = None;
    until("the period is over", || {
        match run(census.close(second, HOUR)) {
            Ok(PeriodClose::Mine { token: mine }) => {
                token = Some(mine);
                true
            }
            Ok(_) => false,
            Err(error) => {
                failed = Some(error);
                true
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let counted = run(census.scan_closing(|_, _| {}))?;
    run(census.finish(&token.unwrap(), counted))?;
    run(census.figures())?;
    run(census.top(CensusMap::Total, 3))?;
    let bans = Bans::new(ground.connection.clone(), set.clone());
    run(bans.ban(&["a"], Some(Duration::from_millis(1))))?;
    run(bans.ban(&["b"], None))?;
    run(bans.ban(&["c"], Some(HOUR)))?;
    run(bans.ends(10, AGES)).map_err(unreached)?;
    let mut lifted = Ok(Vec::new());
    until("a ban ends", || {
        lifted = run(bans.expire());
        lifted.as_ref().map_or(true, |lifted| !lifted.is_empty())
    });
    lifted?;
    run(bans.unban("b"))?;
    run(bans.unban("c"))?;
    run(ground.sets().members(set.as_bytes(), 10, AGES)).map_err(unreached)?;
    Ok(())
}

#[test]
fn every_documented_permission_is_needed_and_reported_if_missing() {
    let commands = world::COUNTING;
    let server = Server::builder()
        .acl(Acl::limiter(&rules(&commands)))
        .start();
    let settings = || world::with_login(world::standalone(&server));
    work(&TestRedis::new(settings())).unwrap();
    let log = server.command(&["ACL", "LOG"]);
    assert_eq!(log.list().len(), 0, "nothing was refused: {log:?}");
    for right in commands {
        // Needed only if a server runs out of memory in the middle.
        if right == "del" {
            continue;
        }
        let set_user = |sign: &str| {
            let rule = format!("{sign}{right}");
            server.command(&["ACL", "SETUSER", "limiter", &rule]).done();
        };
        set_user("-");
        let error = work(&TestRedis::new(settings())).err();
        let error = error.unwrap_or_else(|| panic!("{right} is not needed"));
        assert!(
            error.to_string().contains("NOPERM") || error.to_string().contains("ermission"),
            "{right}: {error}"
        );
        set_user("+");
    }
    work(&TestRedis::new(settings())).unwrap();
}
