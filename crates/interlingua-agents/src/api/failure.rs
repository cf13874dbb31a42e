//! Failed requests: what failed, and whether and when the request is repeated.

use std::time::Duration;

use interlingua::event::{Data, Error, ErrorClass, Outcome, Retry, TurnEnded};
use interlingua::json::Text;
use interlingua::{EntryRef, ReadOptions, Reader, TurnOwner};
use serde_json::Value;

use super::model::ApiKind;

/// When failed requests are repeated.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first.
    pub attempts: u32,
    /// The delay before the second attempt. It doubles with every further one.
    pub first_delay: Duration,
    /// The longest delay.
    pub longest_delay: Duration,
    /// The longest delay that a provider may ask for. Beyond it, the request is not repeated.
    pub longest_hint: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 8,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            longest_hint: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// The delay before the next attempt; `None` if there is none. `attempt` is the number of the one
    /// that failed, and `jitter` a random number below 1.
    pub(crate) fn delay(&self, failure: &Failure, attempt: u32, jitter: f64) -> Option<Duration> {
        if attempt >= self.attempts || !failure.may_be_retried() {
            return None;
        }
        // A hint of zero would let all attempts fail within a moment. A date that has passed is one.
        if let Some(hint) = failure.hint.filter(|hint| !hint.is_zero()) {
            // Clients that got the same hint should not come back at the same moment, nor earlier.
            return (hint <= self.longest_hint).then(|| hint.mul_f64(1.0 + 0.25 * jitter));
        }
        let doubled = self.first_delay.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        Some(doubled.min(self.longest_delay).mul_f64(1.0 - 0.25 * jitter))
    }
}

/// A request that failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Failure {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    pub(crate) http_status: Option<u64>,
    /// When the provider asks to repeat the request.
    pub(crate) hint: Option<Duration>,
    /// Whether the provider asks to repeat it.
    pub(crate) should_retry: Option<bool>,
    /// Why the response stopped, as the provider names it.
    pub(crate) stop_reason: Option<String>,
    /// The server has certainly not begun to handle the request.
    pub(crate) is_unsent: bool,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), ..Self::default() }
    }

    /// A failure that a response reported, with the details of its error.
    pub(crate) fn of_response(end: &TurnEnded<'_>, details: Option<&str>) -> Self {
        let message = text(&end.cause).unwrap_or_else(|| "the response failed".to_owned());
        let hint = details.and_then(retry_info).or_else(|| stated_delay(&message));
        Self {
            class: end.class.clone().unwrap_or_default(),
            message,
            code: text(&end.reason),
            http_status: end.http_status,
            hint,
            should_retry: None,
            stop_reason: text(&end.stop_reason),
            is_unsent: false,
        }
    }

    /// An HTTP response that is an error.
    pub(crate) fn of_http(api: ApiKind, status: u16, headers: &Headers, body: &[u8]) -> Self {
        let (end, details) = read_error(api, body);
        let by_status = ErrorClass::of_http_status(u64::from(status));
        let mut failure = match end {
            Some(end) => Self::of_response(&end, details.as_deref()),
            None => Self::new(ErrorClass::Unspecified, describe(status, body)),
        };
        if failure.class == ErrorClass::Unspecified {
            failure.class = by_status;
        }
        failure.http_status = Some(u64::from(status));
        failure.hint = headers.retry_after().or(failure.hint);
        failure.should_retry = headers.should_retry().or((status == 409).then_some(true));
        failure
    }

    fn may_be_retried(&self) -> bool {
        // A quota that is used up is not available a moment later, whatever a header states.
        let never = matches!(
            self.class,
            ErrorClass::Quota | ErrorClass::Authentication | ErrorClass::ContextOverflow
        );
        !never && self.should_retry.unwrap_or_else(|| self.class.may_be_retried())
    }

    /// What the user has to know to act on it.
    pub(crate) fn cause(&self) -> String {
        match self.hint {
            Some(hint) if hint > Duration::ZERO && self.class == ErrorClass::RateLimit => {
                let seconds = hint.as_secs_f64().ceil();
                format!("{} (the provider asks to wait for {seconds} s)", self.message)
            }
            _ => self.message.clone(),
        }
    }

    pub(crate) fn to_error(&self) -> Error<'static> {
        Error {
            class: self.class.clone(),
            message: Text::from(self.cause()),
            code: self.code.clone().map(Text::from),
            http_status: self.http_status,
            fatal: true,
            retryable: Some(self.may_be_retried()),
            retry_after_ms: self.hint.map(milliseconds),
        }
    }

    pub(crate) fn to_retry(&self, attempt: u32, of: u32, delay: Duration) -> Retry<'static> {
        Retry {
            attempt: Some(u64::from(attempt)),
            of: Some(u64::from(of)),
            delay_ms: Some(milliseconds(delay)),
            class: self.class.clone(),
            http_status: self.http_status,
            message: Some(Text::from(self.message.clone())),
        }
    }

    pub(crate) fn to_turn_ended(&self) -> TurnEnded<'static> {
        let outcome = match self.class {
            ErrorClass::TimedOut => Outcome::TimedOut,
            ErrorClass::Refusal => Outcome::Refused,
            _ => Outcome::Failed,
        };
        TurnEnded {
            outcome,
            cause: Some(Text::from(self.cause())),
            class: Some(self.class.clone()).filter(|class| *class != ErrorClass::Unspecified),
            reason: self.code.clone().map(Text::from),
            stop_reason: self.stop_reason.clone().map(Text::from),
            http_status: self.http_status,
            ..TurnEnded::default()
        }
    }
}

/// The headers of a response that concern its failure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headers {
    pub(crate) retry_after: Option<String>,
    pub(crate) retry_after_ms: Option<String>,
    pub(crate) should_retry: Option<String>,
}

impl Headers {
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let number = |text: &Option<String>| text.as_ref()?.trim().parse::<f64>().ok();
        let milliseconds = number(&self.retry_after_ms);
        let seconds = milliseconds.map(|it| it / 1000.0).or_else(|| number(&self.retry_after))?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn should_retry(&self) -> Option<bool> {
        self.should_retry.as_deref().and_then(|text| text.trim().parse().ok())
    }
}

/// Reads the body of an error by the dialect of the API: its meaning, and its details.
fn read_error(api: ApiKind, body: &[u8]) -> (Option<TurnEnded<'static>>, Option<String>) {
    let options = ReadOptions { turns: TurnOwner::Caller, ..ReadOptions::default() };
    let reader = api.dialect().and_then(|dialect| Reader::new(dialect.into(), options));
    let Ok(mut reader) = reader else { return (None, None) };
    let mut details = None;
    let mut sink = |entry: EntryRef<'_>| {
        if let Data::Native(native) = &entry.event.data
            && native.name == *"error.details"
        {
            details = native.raw.as_ref().map(|raw| raw.get().to_owned());
        }
    };
    let Ok(_) = reader.push(body, None, &mut sink);
    let Ok(_) = reader.push(b"\n\n", None, &mut sink);
    let end = reader.take_response_end();
    // A prompt that the provider blocks is refused.
    let end = end.filter(|end| matches!(end.outcome, Outcome::Failed | Outcome::Refused));
    (end, details)
}

/// The delay in the details of an error of Gemini.
fn retry_info(details: &str) -> Option<Duration> {
    let details: Value = serde_json::from_str(details).ok()?;
    let delay = details.as_array()?.iter().find_map(|it| it.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The delay that the message of an error states, as those of OpenAI do: "try again in 1.3s".
fn stated_delay(message: &str) -> Option<Duration> {
    let (_, rest) = message.split_once("try again in ")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = rest.split_at_checked(end)?;
    let number: f64 = number.parse().ok()?;
    let seconds = if unit.starts_with("ms") {
        number / 1000.0
    } else if unit.starts_with('s') {
        number
    } else {
        return None;
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Describes a body that is not an error of the API, such as the page of a proxy.
fn describe(status: u16, body: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(body);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = text.chars().take(SHOWN).collect();
    if (300..400).contains(&status) {
        return format!(
            "the server redirects (status {status}) to another address, to which the key is not sent: check the \
             address of the server"
        );
    }
    match shown.is_empty() {
        true => format!("the server answered with status {status} and without a message"),
        false => format!("the server answered with status {status}: {shown}"),
    }
}

fn text(text: &Option<Text<'_>>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(api: ApiKind, status: u16, body: &str) -> Failure {
        Failure::of_http(api, status, &Headers::default(), body.as_bytes())
    }

    #[test]
    fn a_used_up_quota_is_not_retried() {
        let openai = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
        let anthropic = r#"{"type":"error","error":{"type":"rate_limit_error","message":"cap","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        let gemini = r#"{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#;
        let all = [
            (ApiKind::Responses, openai),
            (ApiKind::Chat, openai),
            (ApiKind::Anthropic, anthropic),
            (ApiKind::Gemini, gemini),
        ];
        for (api, body) in all {
            let failure = of(api, 429, body);
            assert_eq!(failure.class, ErrorClass::Quota, "{api:?}");
            assert_eq!(RetryPolicy::default().delay(&failure, 1, 0.0), None, "{api:?}");
        }
    }

    #[test]
    fn the_provider_decides_when_a_request_is_repeated() {
        let headers = Headers { retry_after: Some("7".to_owned()), ..Headers::default() };
        let failure =
            Failure::of_http(ApiKind::Chat, 429, &headers, b"{\"error\":{\"message\":\"slow\"}}");
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay(&failure, 1, 0.0), Some(Duration::from_secs(7)));
        let latest = policy.delay(&failure, 1, 1.0);
        assert_eq!(latest, Some(Duration::from_millis(8750)), "up to a quarter is added at random");
        assert_eq!(policy.delay(&failure, policy.attempts, 0.5), None);
        let late = Failure { hint: Some(Duration::from_secs(3600)), ..failure.clone() };
        assert_eq!(policy.delay(&late, 1, 0.5), None, "an hour is too long");
        let refused = Failure { should_retry: Some(false), ..failure };
        assert_eq!(policy.delay(&refused, 1, 0.5), None);
        let gemini = r#"{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}"#;
        let failure = of(ApiKind::Gemini, 429, gemini);
        assert_eq!(policy.delay(&failure, 1, 0.0), Some(Duration::from_millis(3500)));
    }

    /// All attempts failed within a moment.
    #[test]
    fn a_hint_of_zero_is_no_delay() {
        let policy = RetryPolicy::default();
        for retry_after in ["0", "0.0", "-1"] {
            let headers =
                Headers { retry_after: Some(retry_after.to_owned()), ..Headers::default() };
            let failure = Failure::of_http(ApiKind::Anthropic, 529, &headers, b"{}");
            let delays = [1, 2, 3].map(|attempt| policy.delay(&failure, attempt, 0.0).unwrap());
            assert_eq!(delays.map(|delay| delay.as_millis()), [500, 1000, 2000], "{retry_after}");
        }
    }

    #[test]
    fn the_delay_grows_to_a_limit() {
        let failure = Failure::new(ErrorClass::Overloaded, "overloaded");
        let policy = RetryPolicy { attempts: 20, ..RetryPolicy::default() };
        let delays = [1, 2, 3, 19].map(|attempt| policy.delay(&failure, attempt, 0.0).unwrap());
        assert_eq!(delays.map(|delay| delay.as_millis()), [500, 1000, 2000, 30_000]);
        let shortest = policy.delay(&failure, 1, 1.0).unwrap();
        assert_eq!(shortest.as_millis(), 375, "up to a quarter is left out at random");
    }

    #[test]
    fn a_page_of_a_proxy_is_described() {
        let failure = of(ApiKind::Anthropic, 502, "<html>\n<h1>Bad Gateway</h1>");
        assert_eq!(failure.class, ErrorClass::Internal);
        assert!(failure.message.contains("502") && failure.message.contains("Bad Gateway"));
        assert!(failure.may_be_retried());
        assert!(of(ApiKind::Gemini, 500, "").message.contains("without a message"));
    }

    #[test]
    fn a_delay_is_read_from_a_message() {
        let delay = |text: &str| stated_delay(text).map(|delay| delay.as_millis());
        assert_eq!(delay("Rate limit reached. Please try again in 1.3s. See"), Some(1300));
        assert_eq!(delay("Please try again in 20ms."), Some(20));
        assert_eq!(delay("try again in 6m0s"), None);
        assert_eq!(delay("try again in s"), None);
        assert_eq!(delay("try again later"), None);
    }

    #[test]
    fn a_blocked_prompt_is_refused_and_a_redirect_not_followed() {
        let body = r#"{"error":{"message":"Your prompt was flagged","type":"invalid_request_error","code":"content_policy_violation"}}"#;
        let failure = of(ApiKind::Chat, 400, body);
        assert_eq!(failure.class, ErrorClass::Refusal);
        assert_eq!(failure.message, "Your prompt was flagged");
        assert_eq!(failure.to_turn_ended().outcome, Outcome::Refused);
        let failure = of(ApiKind::Chat, 308, "");
        assert_eq!(failure.class, ErrorClass::Configuration);
        assert!(failure.message.contains("redirects"));
    }

    #[test]
    fn an_error_states_whether_and_when_it_may_be_retried() {
        let headers = Headers { retry_after: Some("7".to_owned()), ..Headers::default() };
        let body = b"{\"error\":{\"message\":\"slow\"}}";
        let error = Failure::of_http(ApiKind::Chat, 429, &headers, body).to_error();
        assert_eq!((error.retryable, error.retry_after_ms), (Some(true), Some(7000)));
        let error = of(ApiKind::Chat, 401, "{}").to_error();
        assert_eq!((error.retryable, error.retry_after_ms), (Some(false), None));
    }

    #[test]
    fn a_wrong_key_of_gemini_is_a_failed_sign_in() {
        let body = r#"{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
        assert_eq!(of(ApiKind::Gemini, 400, body).class, ErrorClass::Authentication);
    }
}
