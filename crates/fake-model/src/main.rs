//! The program `fake-model`: a scripted model API on loopback, for people.

use std::io::{self, Write};
use std::process::ExitCode;

use fake_model::{FakeModel, Reply, Script, guide};

const USAGE: &str = "usage: fake-model [SCRIPT.json] [--port N] [--log]\n\
    Serves the script (or one short text, again and again) on 127.0.0.1 until it is stopped.\n\
    --log prints each request as a line of JSON.\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Options::read(&arguments).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // If the error cannot be written, it cannot be reported.
            let _ = writeln!(io::stderr(), "fake-model: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    script: Option<String>,
    port: u16,
    log: bool,
    help: bool,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--help" | "-h" => options.help = true,
                "--log" => options.log = true,
                "--port" => {
                    let port = arguments.next().and_then(|port| port.parse().ok());
                    options.port = port.ok_or("--port needs a number from 0 to 65535")?;
                }
                flag if flag.starts_with('-') => {
                    return Err(format!("{flag} is not an option\n{USAGE}"));
                }
                path if options.script.is_none() => options.script = Some(path.to_owned()),
                extra => return Err(format!("one script is enough: {extra}\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<(), String> {
    if options.help {
        return print(USAGE);
    }
    let script = read_script(options.script.as_deref())?;
    let key = script.key.clone();
    let model = FakeModel::start_at(script, options.port)
        .map_err(|error| format!("port {} cannot be had: {error}", options.port))?;
    print(&format!("{}\n\n{}\n", model.address(), guide(&model.address(), &key)))?;
    follow(&model, options.log)
}

fn read_script(path: Option<&str>) -> Result<Script, String> {
    let Some(path) = path else {
        return Ok(Script::new().reply(Reply::text("Hello from the script.")).repeat_last());
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("the script {path} cannot be read: {error}"))?;
    Script::from_json(&text).map_err(|error| format!("the script {path} is not valid: {error}"))
}

/// Prints requests and findings until the program is stopped.
fn follow(model: &FakeModel, log: bool) -> Result<(), String> {
    let (mut number, mut printed) = (0, 0);
    loop {
        let hour = std::time::Instant::now() + std::time::Duration::from_secs(3600);
        let Some(request) = model.wait_for_request(number, hour) else { continue };
        number += 1;
        print(&format!("{} {}: {}\n", request.method, request.path, request.kind))?;
        if log {
            print(&format!("{}\n", request.body))?;
        }
        let findings = model.findings();
        for finding in findings.iter().skip(printed) {
            print(&format!("! {finding}\n"))?;
        }
        printed = findings.len();
    }
}

fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("cannot write: {error}"))
}
