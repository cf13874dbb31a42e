use super::date::Date;
use super::*;

const DAY: u64 = 86_400_000;
/// 2026-11-17, at noon.
const NOW: u64 = 1_794_873_600_000 + DAY / 2;

fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage<'static> {
    Usage {
        input: Some(input),
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
        output: Some(output),
        ..Usage::default()
    }
}

fn cost(model: &str, usage: &Usage<'_>, at: u64) -> f64 {
    Prices::builtin().cost(model, usage, at).unwrap()
}

fn is(cost: f64, expected: f64) {
    assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
}

/// The problem of a table that is not valid.
fn problem(json: &str) -> String {
    Prices::read(json).unwrap_err().to_string()
}

fn table(periods: &str) -> String {
    format!(r#"{{"models": [{{"names": ["m"], "periods": [{periods}]}}]}}"#)
}

/// The time at which a day begins.
fn start_of(date: Date) -> u64 {
    (0..).map(|day| day * DAY).find(|at| Date::of_time(*at) >= date).unwrap()
}

#[test]
fn every_builtin_entry_has_a_source_its_date_and_a_period() {
    let prices = Prices::read(BUILTIN).unwrap();
    assert!(prices.models.len() >= 30);
    for model in &prices.models {
        assert!(model.window().context.is_some(), "{:?}", model.names);
        for period in &model.periods {
            let source = period.source.as_deref().unwrap_or_default();
            assert!(!source.trim().is_empty(), "{:?}", model.names);
            let source_date = period.source_date.unwrap();
            // Either the source states when the price ends, or it counts as current for 90 days.
            match period.until {
                Some(_) => assert_eq!(period.stale_after, None, "{:?}", model.names),
                None => {
                    let last = Date::of_time(start_of(source_date) + 90 * DAY);
                    assert_eq!(period.stale_after, Some(last), "{:?}", model.names);
                }
            }
        }
    }
    // The days themselves are written out, although serde would take an absent one for none.
    let json: serde_json::Value = serde_json::from_str(BUILTIN).unwrap();
    for model in json["models"].as_array().unwrap() {
        for period in model["periods"].as_array().unwrap() {
            assert!(period.get("from").is_some() && period.get("until").is_some(), "{model}");
        }
    }
}

#[test]
fn a_stale_price_is_used_and_reported() {
    let prices = Prices::read(&table(
        r#"{"until": "2026-10-31", "rates": {"input": 1, "output": 1}},
           {"from": "2026-11-01", "source_date": "2026-10-20", "stale_after": "2026-11-16",
            "rates": {"input": 2, "output": 2}}"#,
    ));
    let prices = prices.unwrap();
    let one = usage(1_000_000, 0, 0, 0);
    let last_moment = NOW - DAY / 2 - 1;
    assert_eq!(prices.stale("m", last_moment), None);
    let stale = StalePrice {
        source_date: Some("2026-10-20".to_owned()),
        stale_after: "2026-11-16".to_owned(),
    };
    assert_eq!(prices.stale("m", last_moment + 1), Some(stale));
    assert_eq!(prices.cost("m", &one, last_moment + 1), Some(2.0));
    // A price with a stated end is known for its whole period, and not used after it.
    let october = NOW - 30 * DAY;
    assert_eq!((prices.stale("m", october), prices.cost("m", &one, october)), (None, Some(1.0)));
    assert_eq!(prices.stale("unknown", NOW), None);
}

#[test]
fn a_price_whose_stated_end_has_passed_is_not_used() {
    let ended = table(r#"{"until": "2026-11-16", "rates": {"input": 1, "output": 1}}"#);
    let prices = Prices::read(&ended).unwrap();
    assert_eq!(prices.cost("m", &usage(1, 0, 0, 1), NOW), None);
    assert_eq!(prices.stale("m", NOW), None);
}

#[test]
fn no_builtin_name_has_two_entries() {
    let prices = Prices::builtin();
    for name in prices.models.iter().flat_map(|model| &model.names) {
        let name = name.replace("{date}", "2026-01-31");
        let entries = prices.models.iter().filter(|model| model.is_named(&name));
        assert_eq!(entries.count(), 1, "{name}");
    }
}

#[test]
fn each_kind_of_token_has_its_price() {
    // 5 a million of output, 1 of input, 0.1 and 1.25 of cached input.
    is(cost("claude-haiku-4-5", &usage(1_000_000, 0, 0, 0), NOW), 1.0);
    is(cost("claude-haiku-4-5", &usage(0, 1_000_000, 0, 0), NOW), 0.1);
    is(cost("claude-haiku-4-5", &usage(0, 0, 1_000_000, 0), NOW), 1.25);
    is(cost("claude-haiku-4-5", &usage(0, 0, 0, 1_000_000), NOW), 5.0);
    let reasoning = Usage { reasoning: Some(400_000), ..usage(0, 0, 0, 1_000_000) };
    is(cost("claude-haiku-4-5", &reasoning, NOW), 5.0);
}

#[test]
fn cached_input_without_a_price_of_its_own_costs_what_input_costs() {
    let prices = Prices::read(&table(r#"{"rates": {"input": 2, "output": 3}}"#)).unwrap();
    let cost = prices.cost("m", &usage(100, 1_000, 10_000, 0), NOW).unwrap();
    is(cost, 11_100.0 * 2.0 / 1e6);
}

#[test]
fn the_price_is_the_one_of_the_day() {
    let one = usage(1_000_000, 0, 0, 1_000_000);
    // 2026-12-01 begins 14 days after 2026-11-17.
    let december = NOW - DAY / 2 + 14 * DAY;
    is(cost("gemini-4-argon", &one, december - 1), 12.0);
    is(cost("gemini-4-argon", &one, december), 24.0);
}

#[test]
fn the_price_is_the_one_of_the_hour() {
    let one = usage(1_000_000, 0, 0, 0);
    let midnight = NOW - DAY / 2;
    let at = |hour: u64| cost("deepseek-v4-pro", &one, midnight + hour * DAY / 24);
    for (hour, expected) in [(0, 0.66), (1, 1.32), (3, 1.32), (4, 0.66), (9, 1.32), (10, 0.66)] {
        is(at(hour), expected);
    }
}

#[test]
fn a_day_without_a_price_has_no_cost() {
    // 2026-08-25 is between two periods of this model.
    let at = NOW - 84 * DAY;
    assert_eq!(Prices::builtin().cost("deepseek-v4-flash", &usage(1, 0, 0, 1), at), None);
    is(cost("deepseek-v4-pro", &usage(1_000_000, 0, 0, 0), at), 0.66);
}

#[test]
fn the_whole_prompt_decides_the_tier_cached_or_not() {
    // 2 a million up to 272,000 tokens, 4 above; 0.2 and 0.4 of cached input.
    let small = usage(2_000, 270_000, 0, 0);
    is(cost("gpt-6-sol", &small, NOW), (2_000.0 * 2.0 + 270_000.0 * 0.2) / 1e6);
    let large = usage(2_000, 270_001, 0, 0);
    is(cost("gpt-6-sol", &large, NOW), (2_000.0 * 4.0 + 270_001.0 * 0.4) / 1e6);
}

#[test]
fn an_unknown_model_has_no_cost() {
    let prices = Prices::builtin();
    for model in ["", "claude-fable-5-2", "anthropic/claude-haiku-4-5", "claude-haiku-4-5-latest"] {
        assert_eq!(prices.cost(model, &usage(1, 1, 1, 1), NOW), None, "{model}");
        assert_eq!(prices.window(model), None, "{model}");
    }
}

#[test]
fn missing_counts_have_no_cost() {
    let prices = Prices::builtin();
    let no_output = Usage { input: Some(1), ..Usage::default() };
    let no_input = Usage { output: Some(1), ..Usage::default() };
    for usage in [no_output, no_input, Usage::default()] {
        assert_eq!(prices.cost("gpt-6-sol", &usage, NOW), None);
    }
}

#[test]
fn a_name_with_a_date_is_the_same_model() {
    let prices = Prices::builtin();
    let rates = |name| prices.rates(name, 0, NOW);
    assert!(rates("claude-haiku-4-5").is_some());
    assert_eq!(rates("claude-haiku-4-5-20251001"), rates("claude-haiku-4-5"));
    assert_eq!(rates("gpt-5.4-2026-03-05"), rates("gpt-5.4"));
    assert_eq!(rates("gpt-5.6"), rates("gpt-5.6-sol"));
    assert_ne!(rates("gpt-5.4-mini"), rates("gpt-5.4"));
    assert_eq!(rates("claude-haiku-4-5-20251399"), None);
}

#[test]
fn a_user_overrides_and_adds_models() {
    let user = r#"{"models": [
        {"names": ["gpt-6-sol"], "periods": [{"rates": {"input": 7, "output": 8}}]},
        {"names": ["local"], "periods": [{"rates": {"input": 0, "output": 0}}]}
    ]}"#;
    let prices = Prices::builtin().overridden_by(Prices::read(user).unwrap());
    let one = usage(1_000_000, 0, 0, 0);
    assert_eq!(prices.cost("gpt-6-sol", &one, NOW), Some(7.0));
    assert_eq!(prices.cost("local", &one, NOW), Some(0.0));
    assert_eq!(
        prices.cost("gpt-6-luna", &one, NOW),
        Prices::builtin().cost("gpt-6-luna", &one, NOW)
    );
    // What the user does not state is still known.
    assert_eq!(prices.window("gpt-6-sol").unwrap().context, Some(1_050_000));
    assert_eq!(prices.window("local"), None);
}

#[test]
fn a_table_that_is_not_valid_is_refused_with_the_entry_and_the_problem() {
    let rates = r#""rates": {"input": 1, "output": 1}"#;
    let cases = [
        (table(""), "no periods"),
        (table(&format!(r#"{{"from": "2026-02-30", {rates}}}"#)), "2026-02-30"),
        (
            table(&format!(r#"{{"from": "2026-02-03", "until": "2026-02-02", {rates}}}"#)),
            "ends before it begins",
        ),
        (
            table(&format!(
                r#"{{"source_date": "2026-02-03", "stale_after": "2026-02-02", {rates}}}"#
            )),
            "is stale before the date of its source",
        ),
        (
            table(&format!(
                r#"{{"until": "2026-02-02", {rates}}}, {{"from": "2026-02-02", {rates}}}"#
            )),
            "the period … to 2026-02-02 has to end before the period 2026-02-02 to …",
        ),
        (table(&format!("{{{rates}}}, {{{rates}}}")), "has to end before"),
        (table(r#"{"rates": {"input": -1, "output": 1}}"#), "below 0"),
        (table(r#"{"rates": {"input": 1}}"#), "output"),
        (table(&format!(r#"{{{rates}, "color": 1}}"#)), "color"),
        (
            table(&format!(r#"{{{rates}, "peak": {{"hours_utc": [[4, 3]], {rates}}}}}"#)),
            "hours_utc",
        ),
        (
            table(&format!(
                r#"{{{rates}, "above": [{{"tokens": 2, {rates}}}, {{"tokens": 1, {rates}}}]}}"#
            )),
            "smallest first",
        ),
        (r#"{"models": [{"names": [], "periods": []}]}"#.to_owned(), "entry 1 has no names"),
    ];
    for (json, expected) in cases {
        let problem = problem(&json);
        assert!(problem.contains(expected), "{json}: {problem}");
    }
    let names = |names: &str| {
        format!(r#"{{"models": [{{"names": [{names}], "periods": [{{{rates}}}]}}]}}"#)
    };
    assert!(problem(&names(r#""a", "a""#)).contains("the entry of a: the name a is listed twice"));
    assert!(problem(&names(r#""a-{date}-b""#)).contains("at its end only"));
    assert!(problem(&names(r#""{date}""#)).contains("is not a name"));
}
