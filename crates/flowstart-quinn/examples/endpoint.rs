//! A plain quinn server and client on this machine, whose client sends with an algorithm of
//! flowstart: `cargo run -p flowstart-quinn --example endpoint -- hystart++ cubic 10000000`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use flowstart_quinn::{QuinnController, QuinnFactory, contestant};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::{self, pki_types};

/// The protocol's name in the handshake.
const PROTOCOL: &[u8] = b"flowstart-example";

/// What a transfer came to.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Bytes that the server read.
    pub(crate) received: u64,
    /// The sum of them, so that it is known whether they are the right ones.
    pub(crate) sum: u64,
    /// Window in bytes at the end.
    pub(crate) window: u64,
    /// How the start ended, if it did.
    pub(crate) exit: Option<flowstart_quinn::congestion::StartExit>,
}

fn ends(transport: quinn::TransportConfig) -> Result<(quinn::ServerConfig, quinn::ClientConfig), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS13];
    let mut server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    let server = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
    let mut client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
    client.transport_config(Arc::new(transport));
    Ok((server, client))
}

/// Bytes that are easy to make and not all the same.
fn pattern(at: u64) -> u8 {
    (at % 251) as u8
}

async fn receive(endpoint: quinn::Endpoint) -> Result<(u64, u64), Box<dyn Error + Send + Sync>> {
    let connection = endpoint.accept().await.ok_or("the endpoint was closed")?.await?;
    let (mut answer, mut stream) = connection.accept_bi().await?;
    let (mut received, mut sum) = (0, 0_u64);
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len() as u64;
        sum += chunk.bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
    answer.write_all(&received.to_be_bytes()).await?;
    answer.finish()?;
    connection.closed().await;
    Ok((received, sum))
}

/// Sends so many bytes from a client with this start and avoidance to a server that knows nothing
/// of them.
///
/// # Errors
/// If the stack cannot carry the algorithm, or the connection fails.
pub(crate) async fn transfer(start: &str, avoidance: &str, bytes: u64) -> Result<Sent, Box<dyn Error>> {
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(QuinnFactory::new(contestant(start, avoidance)?)?));
    let (server, client) = ends(transport)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = quinn::Endpoint::server(server, local)?;
    let address = server.local_addr()?;
    let receiving = tokio::spawn(receive(server));

    let mut endpoint = quinn::Endpoint::client(local)?;
    endpoint.set_default_client_config(client);
    let connection = endpoint.connect(address, "localhost")?.await?;
    let (mut stream, mut answer) = connection.open_bi().await?;
    let data: Vec<u8> = (0..bytes).map(pattern).collect();
    stream.write_all(&data).await?;
    stream.finish()?;
    answer.read_to_end(8).await?;
    let state = connection.congestion_state();
    let window = state.window();
    let exit = state.into_any().downcast::<QuinnController>().ok().and_then(|ours| ours.start_exit().copied());
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    let (received, sum) = receiving.await?.map_err(|error| error.to_string())?;
    Ok(Sent { received, sum, window, exit })
}

/// The sum of the bytes that [`transfer`] sends.
#[must_use]
pub(crate) fn sum(bytes: u64) -> u64 {
    (0..bytes).map(|at| u64::from(pattern(at))).sum()
}

#[allow(dead_code, reason = "a test takes this file as a module")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let start = arguments.next().unwrap_or_else(|| "hystart++".to_owned());
    let avoidance = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    let bytes = arguments.next().map_or(Ok(10_000_000), |bytes| bytes.parse())?;
    let sent = transfer(&start, &avoidance, bytes).await?;
    if (sent.received, sent.sum) != (bytes, sum(bytes)) {
        return Err("other bytes arrived than were sent".into());
    }
    println!("{} bytes received; window at the end {} bytes", sent.received, sent.window);
    match sent.exit {
        Some(exit) => println!("{start} ended at {} packets: {:?}", exit.cwnd, exit.reason),
        None => println!("{start} did not end"),
    }
    Ok(())
}
