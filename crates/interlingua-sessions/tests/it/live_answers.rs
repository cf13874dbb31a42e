//! The client answers a call of one of its tools while its agent waits, and something ends in this moment. The answer
//! reaches an agent once.

use std::sync::Arc;

use interlingua::Entry;
use interlingua::event::Outcome;
use interlingua_sessions::host::{HostLimits, Received};
use interlingua_sessions::{CommandState, Host, MemoryStore};

use crate::late_answers::answer;
use crate::support::key;
use crate::talker::{Fixture, Scripts, kinds, outcomes, within};
use crate::unsteady::Unsteady;

fn has_end(log: &[Entry]) -> bool {
    kinds(log).contains(&"tool_ended")
}

/// An answer was acknowledged as delivered before the end of its call was stored. After a kill in between, the call
/// was open in the log, and could be answered again.
#[tokio::test]
async fn an_answer_is_acknowledged_when_the_end_of_its_call_is_stored() {
    let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::Unknown));
    let unsteady = Arc::new(Unsteady::new(store.clone()));
    let host = Host::open(unsteady.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
    let fixture = Fixture { host, store, scripts };
    let (id, calls) = fixture.dial("dial").await;
    unsteady.commits.forget_permits(usize::MAX);
    let (host, of_task, call) = (fixture.host.clone(), id.clone(), calls[0].clone());
    let answered =
        tokio::spawn(async move { host.command(&of_task, key("a"), answer(&call, "blue")).await });
    // That it is being delivered, and one more.
    unsteady.commits.add_permits(2);
    fixture.until(&id, has_end).await;
    assert!(!answered.is_finished());
    unsteady.commits.add_permits(1000);
    assert_eq!(within(answered).await.unwrap().unwrap().state, CommandState::Delivered);
    let log = fixture.until_turns(&id, 1).await;
    assert_eq!((outcomes(&log), fixture.scripts.times("blue")), (vec![Outcome::Completed], 1));
}
