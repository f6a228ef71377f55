//! A small provider: discovery, keys, and a token endpoint that responds as a test wants.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub(crate) const CLIENT: &str = "lab";

struct State {
    document: Value,
    keys: Value,
    tokens: (u16, Value),
    user_info: Value,
    last_form: String,
    requests_for_keys: u32,
}

/// A provider on this machine, stopped when dropped.
pub(crate) struct Provider {
    pub(crate) issuer: String,
    key: EcdsaKeyPair,
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn encode(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

pub(crate) fn header(algorithm: &str, key: &str) -> String {
    encode(&json!({"alg": algorithm, "kid": key, "typ": "JWT"}))
}

pub(crate) fn unsigned(claims: &Value) -> String {
    format!("{}.{}.", header("none", "1"), encode(claims))
}

/// Signed with a text that others know.
pub(crate) fn hmac_signed(claims: &Value, secret: &[u8]) -> String {
    let signed = format!("{}.{}", header("HS256", "1"), encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// Signed well, under a header with an extension that is unknown.
pub(crate) fn critical(provider: &Provider, claims: &Value) -> String {
    let header = encode(&json!({"alg": "ES256", "kid": "1", "crit": ["x"], "x": 1}));
    provider.signed(&header, claims)
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let point = &key.public_key().as_ref()[1..];
        let (x, y) = point.split_at(32);
        let keys = json!({"keys": [
            {"kty": "oct", "k": "AAAA"},
            {"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig", "alg": "ES256",
             "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)},
        ]});
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"),
        });
        let state = Arc::new(Mutex::new(State {
            document,
            keys,
            tokens: (500, Value::Null),
            user_info: Value::Null,
            last_form: String::new(),
            requests_for_keys: 0,
        }));
        let shared = Arc::clone(&state);
        let server = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&shared)));
            }
        });
        Self {
            issuer,
            key,
            state,
            server,
        }
    }

    fn signed(&self, header: &str, claims: &Value) -> String {
        let signed = format!("{header}.{}", encode(claims));
        let signature = self
            .key
            .sign(&SystemRandom::new(), signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.signed(&header("ES256", "1"), claims)
    }

    pub(crate) fn sign_with_key_id(&self, id: &str, claims: &Value) -> String {
        self.signed(&header("ES256", id), claims)
    }

    pub(crate) fn sign_without_key_id(&self, claims: &Value) -> String {
        self.signed(&encode(&json!({"alg": "ES256"})), claims)
    }

    pub(crate) fn public_key(&self) -> Vec<u8> {
        self.key.public_key().as_ref().to_vec()
    }

    pub(crate) fn publish_keys_of(&self, other: &Self) {
        let keys = other.state.lock().unwrap().keys.clone();
        self.state.lock().unwrap().keys = keys;
    }

    pub(crate) fn publish_no_keys(&self) {
        self.state.lock().unwrap().keys = json!({"keys": []});
    }

    pub(crate) fn requests_for_keys(&self) -> u32 {
        self.state.lock().unwrap().requests_for_keys
    }

    pub(crate) fn set_user_info(&self, claims: Value) {
        self.state.lock().unwrap().user_info = claims;
    }

    /// Sets the response of the token endpoint.
    pub(crate) fn respond_with(&self, tokens: Value) {
        self.state.lock().unwrap().tokens = (200, tokens);
    }

    pub(crate) fn refuse(&self, error: &str) {
        self.state.lock().unwrap().tokens = (400, json!({ "error": error }));
    }

    pub(crate) fn change_document(&self, change: &Value) {
        let mut state = self.state.lock().unwrap();
        let change = change.as_object().unwrap().clone();
        state.document.as_object_mut().unwrap().extend(change);
    }

    /// The form that the token endpoint got last.
    pub(crate) fn last_form(&self) -> String {
        self.state.lock().unwrap().last_form.clone()
    }
}

async fn serve(mut connection: TcpStream, state: Arc<Mutex<State>>) {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let Ok(count @ 1..) = connection.read(&mut chunk).await else {
            return;
        };
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if body.len() < length {
            continue;
        }
        let (status, body) = respond(&head, body, &state);
        let body = body.to_string();
        let response = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if connection.write_all(response.as_bytes()).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

fn respond(head: &str, body: &str, state: &Mutex<State>) -> (u16, Value) {
    let mut state = state.lock().unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path {
        "/.well-known/openid-configuration" => (200, state.document.clone()),
        "/keys" => {
            state.requests_for_keys += 1;
            (200, state.keys.clone())
        }
        "/userinfo" => (200, state.user_info.clone()),
        "/token" => {
            body.clone_into(&mut state.last_form);
            state.tokens.clone()
        }
        _ => (404, Value::Null),
    }
}
