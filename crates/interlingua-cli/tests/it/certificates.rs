//! `--ca-file`: a server with TLS whose certificate was issued by an authority of the user's own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use fake_model::{FakeModel, Reply};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::server::ServerConfig;

use crate::model_apis::{Desk, of_type, records};
use crate::support::{Ran, ran};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Authorities with the same name would be taken for each other.
fn authority(name: &str) -> Authority {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// Terminates TLS in front of a model, until it is dropped.
struct TlsProxy {
    address: String,
    _runtime: Runtime,
}

impl TlsProxy {
    fn start(model: &FakeModel, name: &str, authority: &Authority) -> Self {
        let acceptor = acceptor(name, authority);
        let address = model.address();
        let model: SocketAddr = address.strip_prefix("http://").unwrap().parse().unwrap();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_io().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(acceptor.clone(), client, model));
            }
        });
        Self { address, _runtime: runtime }
    }
}

/// A server with a certificate for this name.
fn acceptor(name: &str, authority: &Authority) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, authority).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn forward(acceptor: TlsAcceptor, client: TcpStream, model: SocketAddr) {
    // A client that does not trust the certificate ends the handshake.
    let Ok(mut client) = acceptor.accept(client).await else { return };
    let mut model = TcpStream::connect(model).await.unwrap();
    // Clients need not close TLS properly.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut model).await;
}

/// Asks the model through the proxy, on a system that trusts these authorities.
fn ask(desk: &Desk, proxy: &TlsProxy, system: &Path, arguments: &[&str]) -> Ran {
    let start = ["run", "anthropic-api", "--base-url", &proxy.address];
    let mut command = desk.command(&[&start, arguments, &["hi"]].concat());
    command.env("SSL_CERT_FILE", system).env_remove("SSL_CERT_DIR");
    command.env("NO_PROXY", "127.0.0.1").env_remove("no_proxy");
    ran(command.output().unwrap())
}

/// A home with the certificates of two authorities: that of the server, and one that the system
/// trusts.
fn desk(issuer: &Authority, reply: Option<Reply>) -> Desk {
    let desk = Desk::new(reply);
    std::fs::write(desk.path("ca.pem"), issuer.pem()).unwrap();
    std::fs::write(desk.path("system.pem"), authority("the authority of the system").pem())
        .unwrap();
    desk
}

#[test]
fn an_authority_of_the_user_is_trusted_besides_those_of_the_system() {
    let issuer = authority("the authority of the user");
    for (system, arguments) in [("system.pem", true), ("ca.pem", false)] {
        let desk = desk(&issuer, Some(Reply::text("Hello.")));
        let proxy = TlsProxy::start(&desk.model, "127.0.0.1", &issuer);
        let path = desk.path("ca.pem").display().to_string();
        let arguments = arguments.then_some(["--ca-file", &path]);
        let ran = ask(&desk, &proxy, &desk.path(system), arguments.as_slice().as_flattened());
        assert_eq!(ran.code, Some(0), "{system}: {} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("Hello."), "{system}: {}", ran.stdout);
        assert_eq!(desk.model.main_requests().len(), 1, "{system}");
    }
}

/// A certificate does not become valid by waiting. Before, the request was sent eight times, and the
/// error named no way out.
#[test]
fn a_certificate_that_is_not_trusted_is_reported_at_once() {
    let issuer = authority("the authority of the user");
    for (name, has_file, problem) in [
        // No authority that is known has issued it.
        ("127.0.0.1", false, "UnknownIssuer"),
        // It is that of another server.
        ("example.com", true, "not valid for name"),
    ] {
        let desk = desk(&issuer, None);
        let proxy = TlsProxy::start(&desk.model, name, &issuer);
        let path = desk.path("ca.pem").display().to_string();
        let arguments = has_file.then_some(["--ca-file", &path]);
        let system = desk.path("system.pem");
        let ran = ask(&desk, &proxy, &system, arguments.as_slice().as_flattened());
        assert_eq!(ran.code, Some(1), "{name}: {} {}", ran.stdout, ran.stderr);
        let records = records(&ran);
        let end = of_type(&records, "turn_ended");
        assert_eq!(end["class"], "network", "{end}");
        let cause = end["cause"].as_str().unwrap();
        for part in ["certificate", problem, "--ca-file"] {
            assert!(cause.contains(part), "{name} {part}: {cause}");
        }
        assert_eq!(of_type(&records, "error")["retryable"], false, "{name}");
        assert!(!records.iter().any(|it| it["type"] == "retry"), "{name}: {records:#?}");
        assert_eq!(desk.model.requests().len(), 0, "{name}");
    }
}
