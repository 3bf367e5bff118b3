//! What hooks and workers do now.

use serde_json::{Value, json};

use super::{send_event, setup};
use crate::{http_server::raw_connection::RawConnection, support::wait::wait_until};

#[test]
fn what_hooks_do_is_added_up_once_a_second() {
    let daemon = setup().serve();
    let mut stream = RawConnection::unix(&daemon);
    stream.send("GET /v1/now HTTP/1.1\r\nhost: h\r\n\r\n");
    wait_until("somebody is told", || stream.more().is_ok() && stream.text().contains("event: now"));
    for number in 0..50 {
        send_event(&daemon, &format!("run-{number}"));
    }
    wait_until("all are counted", || stream.more().is_ok() && stream.text().contains("\"invocations\":50"));
    let text = stream.text();
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let now: Value = serde_json::from_str(last).unwrap();
    assert_eq!(now["hooks"][0]["verdicts"]["block"], 50);
    assert_eq!((&now["events"]["total"], &now["dropped"]), (&json!(50), &json!(0)));
    assert!(now["pools"].as_array().unwrap().iter().any(|pool| pool["pool"] == "command"));
    // However many events there are, the stream has one view a second.
    assert!(text.matches("event: now").count() < 60, "{text}");
    daemon.finish();
}

/// A worker of which the first ends in the middle of its first event.
const DYING_WORKER: &str = r#"echo '{"hookyard":1}'
while read -r line; do
  [ -e died ] || { : > died; exit 1; }
  id=${line#*'"id":"'}
  echo '{"id":"'"${id%%'"'*}"'","output":{}}'
done
"#;

#[test]
fn workers_are_counted_with_those_that_failed() {
    let hook = "name: counter\nevents: [before_tool_dispatch]\non_error: ignore\nhandler:\n  type: command\n  mode: worker\n  \
                workers: 3\n  command: exec sh .openharness/worker.sh\n";
    let setup = setup().file("shop/.openharness/hooks/guard.yaml", hook);
    let daemon = setup.file("shop/.openharness/worker.sh", DYING_WORKER).serve();
    let mut stream = RawConnection::unix(&daemon);
    stream.send("GET /v1/now HTTP/1.1\r\nhost: h\r\n\r\n");
    wait_until("there are no workers", || stream.more().is_ok() && stream.text().contains("\"workers\":[]"));
    send_event(&daemon, "dies");
    send_event(&daemon, "lives");
    let counted = "\"workers\":[{\"workspace_id\":\"shop\",\"hook\":\"counter\",\"workers\":1,\"busy\":0,\"most\":3,\
                   \"failed\":1,\"why\":null}]";
    wait_until("one has taken its place", || stream.more().is_ok() && stream.text().contains(counted));
    daemon.finish();
}
