//! The agents: shell scripts. What they say depends on their prompts alone.

/// Plays Claude Code. Reacts to the first word of its prompt, notes every prompt in `received`, and says:
///
/// | word | what it does |
/// |---|---|
/// | `wait` | streams half of a text, and goes on when it is interrupted |
/// | `run` | a command runs until it is interrupted |
/// | `touch` | asks for a permission, and prints the decision |
/// | `ask` | asks a question, and prints whether it was answered |
/// | `silent` | reports nothing |
/// | `flood` | says one word, waits at the pipe `go`, and prints 50 texts of 8 KB |
/// | `stream` | streams a text in twenty pieces |
/// | any other | repeats its prompt in three texts |
pub(super) const TALKER: &str = r#"#!/bin/sh
say() { echo '{"type":"assistant","message":{"id":"m'$n$2'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s1","uuid":"u'$n$2'"}'; }
part() { echo '{"type":"stream_event","event":'"$1"',"session_id":"s1","uuid":"p'$n.$2'"}'; }
begin() {
  part '{"type":"message_start","message":{"id":"d'$n'","role":"assistant","content":[]}}' a
  part '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}' b
}
piece() { part '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'"$1"'"}}' "$2"; }
end() { busy=; echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s1","uuid":"r'$n'"}'; }
n=$$.0
i=0
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*)
      if [ "$child" ]; then kill $child; child=; fi
      [ "$busy" ] || continue
      end error_during_execution true aborted_streaming; continue;;
    *'"control_response"'*)
      case $line in *'"answers"'*) say answered;; *'"behavior":"allow"'*) say allowed;; *) say denied;; esac
      end success false completed; continue;;
    *'"type":"user"'*) ;;
    *) continue;;
  esac
  i=$((i+1)); n=$$.$i
  text=${line#*content\":\"}; text=${text%%\"*}
  echo "$text" >> received
  busy=yes
  case $text in silent*) continue;; esac
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i'$n'"}'
  case $text in
    wait*) begin; piece "$text" c;;
    run*) echo '{"type":"assistant","message":{"id":"c'$n'","role":"assistant","content":[{"type":"tool_use","id":"call'$n'","name":"Bash","input":{"command":"sleep 1000"}}]},"session_id":"s1","uuid":"c'$n'"}'
      sleep 1000.4711 & child=$!;;
    touch*) echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"t'$n'"}}';;
    ask*) echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which?","header":"W","options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}],"multiSelect":false}]},"tool_use_id":"t'$n'"}}';;
    stream*) begin; all=
      for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do piece "$text $k. " $k; all="$all$text $k. "; done
      part '{"type":"content_block_stop","index":0}' y
      echo '{"type":"assistant","message":{"id":"d'$n'","role":"assistant","content":[{"type":"text","text":"'"$all"'"}]},"session_id":"s1","uuid":"e'$n'"}'
      part '{"type":"message_stop"}' z
      end success false completed;;
    flood*) say begins z; read -r _ < go
      long=$(printf %08000d 0)
      for k in 1 2 3 4 5; do for l in 0 1 2 3 4 5 6 7 8 9; do say "$k$l$long" $k$l; done; done
      end success false completed;;
    *) say "$text one. " a; say "$text two. " b; say "$text three. " c; end success false completed;;
  esac
done
"#;

/// Plays an agent that speaks ACP, notes every prompt in `received` and where Qwen Code keeps its session,
/// and repeats it. As long as there is a file `mute`, it does not answer the first request, so that no
/// prompt is sent to it.
pub(super) const LISTENER: &str = r#"#!/bin/sh
answer() { echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
kept=$HOME/.qwen/projects/p
mkdir -p "$kept"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) [ -e mute ] || answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}';;
    *'"session/new"'*) answer '{"sessionId":"s1"}';;
    *'"session/prompt"'*)
      text=${line##*\"text\":\"}; text=${text%%\"*}
      echo "$text" >> received
      echo '{"content":"'"$text"'"}' >> "$kept/s1.jsonl"
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$text"'"}}}}'
      answer '{"stopReason":"end_turn"}';;
    *'"id"'*) answer '{}';;
  esac
done
"#;

/// A time after everything that a test does. Agents note when they received a prompt.
pub(super) const LATER: &str = "2999-01-01T00:00:00Z";

/// What [`TALKER`] says in answer to a prompt, if nothing stops it.
pub(super) fn said(prompt: &str) -> String {
    let repeated = |ends: &[&str]| ends.iter().map(|end| format!("{prompt} {end}. ")).collect();
    match prompt.split(' ').next().unwrap() {
        "wait" => prompt.to_owned(),
        "run" | "touch" | "ask" | "silent" => String::new(),
        "flood" => {
            let number = |number: usize| format!("{number}{:08000}", 0);
            "begins".to_owned() + &(10..60).map(number).collect::<String>()
        }
        "stream" => (1..=20).map(|number| format!("{prompt} {number}. ")).collect(),
        _ => repeated(&["one", "two", "three"]),
    }
}
