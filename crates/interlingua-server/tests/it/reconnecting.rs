//! A connection with server-sent events that breaks anywhere: the reader loses nothing, and receives nothing
//! twice. An event that is not complete does not count for any reader, so it is enough to cut after each one.

use interlingua::dialect::Dialect;
use reqwest::Method;

use crate::support::{Events, Part, Running, Sse, parts, serve_with, transcript, written};

/// A server whose events are small, so that there are many of them.
async fn serve() -> Running {
    serve_with(|settings| settings.streams.event_bytes = 400).await
}

/// Reads events until the connection is closed, after what an earlier connection has delivered.
async fn events(server: &Running, path: &str, offset: &str, last_event: Option<&str>) -> Vec<Sse> {
    let request = server.request(Method::GET, &format!("{path}&live=sse&offset={offset}"));
    let request = match last_event {
        Some(id) => request.header("last-event-id", id),
        None => request,
    };
    Events::new(request.send().await.unwrap()).all().await
}

/// What the events contain.
fn content<'e>(events: impl IntoIterator<Item = &'e Sse>, dialect: &Dialect) -> Part {
    let data = events.into_iter().filter(|event| event.event == "data");
    let parts: Vec<_> =
        data.map(|event| Part::served(event.data.as_bytes(), dialect.written)).collect();
    Part::joined(&parts)
}

fn is_closed(events: &[Sse]) -> bool {
    events.last().is_some_and(|last| last.json()["streamClosed"] == true)
}

/// As an `EventSource` does it: it goes on behind the last event that has arrived.
#[tokio::test]
async fn a_reader_with_the_id_of_the_last_event_goes_on_behind_it() {
    let server = serve().await;
    let entries = transcript("codex-app-server/compact");
    let log = server.transcript("case", &entries).await;
    for dialect in written() {
        for turn in ["", "&turn=1"] {
            let path = format!("{}?dialect={}{turn}", log.events(), dialect.name);
            let whole = Part::served(&server.get(&path).await.body, dialect.written);
            let all = events(&server, &path, "-1", None).await;
            assert_eq!(content(&all, dialect), whole, "{path}");
            for cut in 1..=all.len() {
                let (before, id) = (&all[..cut], &*all[cut - 1].id);
                let after = events(&server, &path, "-1", Some(id)).await;
                assert!(is_closed(&after), "{path} after {id}");
                let read = content(before.iter().chain(&after), dialect);
                assert_eq!(read, whole, "{path} after {id}");
            }
        }
    }
}

/// As clients of Durable Streams do it: data without the control event behind it count as not received.
#[tokio::test]
async fn a_reader_with_the_last_control_offset_reads_the_data_behind_it() {
    let server = serve().await;
    let entries = transcript("codex-app-server/compact");
    let log = server.transcript("case", &entries).await;
    for dialect in written() {
        let path = format!("{}?dialect={}", log.events(), dialect.name);
        let whole = Part::joined(&parts(&entries, dialect));
        let all = events(&server, &path, "-1", None).await;
        for cut in 1..=all.len() {
            let controls = all[..cut].iter().rposition(|event| event.event == "control");
            let Some(last) = controls else { continue };
            let control = all[last].json();
            let offset = control["streamNextOffset"].as_str().unwrap();
            let after = events(&server, &path, offset, None).await;
            assert!(is_closed(&after), "{path} at {offset}");
            let read = content(all[..=last].iter().chain(&after), dialect);
            assert_eq!(read, whole, "{path} at {offset}");
        }
    }
}

/// A reader that has all entries of an open stream still needs what the stream ends with, and a reader that
/// has that as well needs nothing, in any mode.
#[tokio::test]
async fn the_end_of_a_stream_is_served_once() {
    let server = serve().await;
    let entries = transcript("acp/both-directions");
    let mut endings = 0;
    for dialect in written() {
        let log = server.session(&format!("of-{}", dialect.name)).await;
        log.append(entries.clone()).await;
        let path = format!("{}?dialect={}", log.events(), dialect.name);
        let open = server.get(&path).await;
        let offset = open.header("stream-next-offset").unwrap();
        assert_eq!(offset, format!("{:020}", entries.len()));
        log.close().await;
        let end = events(&server, &path, offset, None).await;
        let whole = parts(&entries, dialect);
        assert_eq!(content(&end, dialect), whole[entries.len()], "{path}");
        assert!(is_closed(&end));
        endings += usize::from(end.len() > 1);
        let behind = end.last().unwrap().id.as_str();
        let rest = events(&server, &path, behind, None).await;
        assert_eq!((content(&rest, dialect), is_closed(&rest)), (Part::default(), true), "{path}");
        let rest = server.get(&format!("{path}&offset={behind}")).await;
        assert_eq!(Part::served(&rest.body, dialect.written), Part::default(), "{path}");
        assert_eq!(rest.header("stream-next-offset"), Some(behind));
        assert!(rest.is_closed() && rest.is_up_to_date());
        let before = server.get(&format!("{path}&offset={offset}")).await;
        assert_eq!(before.header("stream-next-offset"), Some(behind));
        assert_eq!(before.header("etag") == rest.header("etag"), behind == offset);
        let polled = server.get(&format!("{path}&offset={behind}&live=long-poll")).await;
        assert_eq!((polled.status.as_u16(), polled.is_closed()), (204, true), "{path}");
    }
    assert!(endings > 0, "some dialects write something at the end");
}
