//! redis-rs: one connection for many tasks, pipelines, both protocols.

use crate::kit::{CONFIG, Server};
use redis::aio::MultiplexedConnection;

async fn connect(server: &Server, options: &str) -> MultiplexedConnection {
    let url = format!("redis://{}/{options}", server.resp);
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

fn throttle(key: &str, burst: u32) -> redis::Cmd {
    let mut command = redis::cmd("CL.THROTTLE");
    command.arg(key).arg(burst).arg(1).arg(3_600);
    command
}

#[tokio::test]
async fn commands_and_pipelines_in_both_protocols() {
    let server = Server::start(CONFIG).await;
    for options in ["", "?protocol=resp3"] {
        let mut connection = connect(&server, options).await;
        let key = format!("k{options}");
        let said: [i64; 5] = throttle(&key, 15)
            .query_async(&mut connection)
            .await
            .unwrap();
        assert_eq!(said, [0, 16, 15, -1, 3_600]);
        let mut pipeline = redis::pipe();
        for _ in 0..20 {
            pipeline.add_command(throttle(&key, 15));
        }
        let said: Vec<[i64; 5]> = pipeline.query_async(&mut connection).await.unwrap();
        let limited: i64 = said.iter().map(|it| it[0]).sum();
        assert_eq!(limited, 5, "15 were left for 20");
        let mut transaction = redis::pipe();
        transaction.atomic();
        for _ in 0..3 {
            transaction.add_command(throttle(&format!("{key}-multi"), 1));
        }
        let said: Vec<[i64; 5]> = transaction.query_async(&mut connection).await.unwrap();
        let limited: Vec<i64> = said.iter().map(|it| it[0]).collect();
        assert_eq!(limited, [0, 0, 1]);
        let error = redis::cmd("CL.THROTTLE")
            .query_async::<()>(&mut connection)
            .await;
        assert!(error.unwrap_err().to_string().contains("Usage"));
    }
}

#[tokio::test]
async fn tasks_that_share_a_connection_get_their_own_answers() {
    let server = Server::start(CONFIG).await;
    let connection = connect(&server, "").await;
    let asking = (0..200_i64).map(|n| {
        let mut connection = connection.clone();
        async move {
            let burst = u32::try_from(n).unwrap();
            let ask = throttle(&format!("task{n}"), burst);
            let said: [i64; 5] = ask.query_async(&mut connection).await.unwrap();
            assert_eq!(said[..3], [0, n + 1, n]);
        }
    });
    futures_util::future::join_all(asking).await;
}
