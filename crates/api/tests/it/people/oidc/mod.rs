//! Sign-in by an identity provider, over HTTP.

mod attacks;
mod roles;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use labdata_application::{Services, people::oidc::OidcService};
use labdata_domain::people::oidc::{EmailDomains, Groups, OidcPolicy, RoleMapping, SignInAttempt};
use labdata_ports::people::oidc::{Identity, IdentityProvider, ProviderError};
use reqwest::{Method, Response, redirect::Policy};
use serde_json::{Value, json};

use crate::server::{Client, TestServer};

const PATH: &str = "/api/v1/session/oidc";
const COOKIE: &str = "labdata-sign-in";

/// A provider that knows one person and takes each code once.
struct Scripted {
    person: Mutex<Identity>,
    used: Mutex<Vec<String>>,
    refresh: Mutex<Result<Groups, ProviderError>>,
    refreshes: AtomicU32,
}

#[async_trait]
impl IdentityProvider for Scripted {
    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn authorization_url(
        &self,
        attempt: &SignInAttempt,
        redirect_uri: &str,
    ) -> Result<String, ProviderError> {
        let state = attempt.state();
        Ok(format!(
            "https://id.example.org/authorize?state={state}&redirect_uri={redirect_uri}"
        ))
    }

    async fn exchange(
        &self,
        _: &SignInAttempt,
        code: &str,
        issuer: Option<&str>,
        _: &str,
    ) -> Result<Identity, ProviderError> {
        if issuer.is_some_and(|issuer| issuer != "https://id.example.org") {
            return Err(ProviderError::Invalid(
                "a callback of another issuer".to_owned(),
            ));
        }
        let mut used = self.used.lock().unwrap();
        // A code `same` stands for a provider that does not notice.
        if code != "same" && used.contains(&code.to_owned()) {
            return Err(ProviderError::Refused("invalid_grant".to_owned()));
        }
        used.push(code.to_owned());
        Ok(self.person.lock().unwrap().clone())
    }

    async fn refresh(&self, _: &[u8], _: &str) -> Result<Identity, ProviderError> {
        self.refreshes.fetch_add(1, Ordering::Relaxed);
        let groups = self.refresh.lock().unwrap().clone()?;
        let person = self.person.lock().unwrap().clone();
        Ok(Identity { groups, ..person })
    }
}

fn listed(groups: &[&str]) -> Groups {
    Groups::Listed(groups.iter().map(|&group| group.to_owned()).collect())
}

fn ada() -> Identity {
    Identity {
        issuer: "https://id.example.org".to_owned(),
        subject: "ada-1".to_owned(),
        email: Some("ada@example.org".to_owned()),
        name: Some("Ada".to_owned()),
        groups: listed(&["lab"]),
        refresh: Some(vec![1]),
    }
}

/// A server whose first administrator is Ada, and a browser that follows no redirects.
struct Lab {
    server: TestServer,
    service: Arc<OidcService>,
    provider: Arc<Scripted>,
    http: reqwest::Client,
}

struct Begun {
    state: String,
    cookie: String,
}

impl Begun {
    fn query(&self, code: &str) -> String {
        format!("code={code}&state={}", self.state)
    }
}

impl Lab {
    async fn start(roles: &str, domains: &str) -> Self {
        Self::start_in("lab", roles, domains).await
    }

    async fn start_in(organization: &str, roles: &str, domains: &str) -> Self {
        let provider = Arc::new(Scripted {
            person: Mutex::new(ada()),
            used: Mutex::default(),
            refresh: Mutex::new(Ok(listed(&["lab"]))),
            refreshes: AtomicU32::new(0),
        });
        let service = Arc::new(OidcService {
            provider: Arc::<Scripted>::clone(&provider),
            policy: OidcPolicy {
                roles: RoleMapping::parse(roles).unwrap(),
                creates_users: EmailDomains::parse(domains).unwrap(),
                organization: organization.to_owned(),
            },
        });
        let used = Arc::clone(&service);
        let server = TestServer::start_changed(move |app| {
            Arc::make_mut(&mut app.services).oidc = Some(used);
        })
        .await;
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .unwrap();
        Self {
            server,
            service,
            provider,
            http,
        }
    }

    /// Adds an administrator, so that Ada is not the last one.
    async fn with_another_admin(self) -> Self {
        let root = json!({"email": "root@example.org", "role": "admin"});
        self.admin()
            .await
            .post("/api/v1/users", &root)
            .await
            .json(200);
        self
    }

    async fn admin(&self) -> Client {
        self.server.admin().await
    }

    /// The services of the server's worker.
    fn services(&self) -> Services {
        Services {
            oidc: Some(Arc::clone(&self.service)),
            ..self.server.services.clone()
        }
    }

    fn change(&self, change: impl FnOnce(&mut Identity)) {
        let mut person = self.provider.person.lock().unwrap();
        *person = ada();
        change(&mut person);
    }

    fn refreshes_to(&self, refresh: Result<Groups, ProviderError>) {
        *self.provider.refresh.lock().unwrap() = refresh;
    }

    async fn get(&self, path: &str, cookie: &str) -> Response {
        let url = format!("http://{}{path}", self.server.address);
        let request = self.http.request(Method::GET, url).header("Cookie", cookie);
        request.send().await.unwrap()
    }

    async fn begin(&self, query: &str) -> Begun {
        let begun = self.get(&format!("{PATH}{query}"), "").await;
        assert_eq!(begun.status(), 302);
        let cookie = begun.headers()["set-cookie"].to_str().unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Lax", "Max-Age=600"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let location = begun.headers()["location"].to_str().unwrap();
        let (_, rest) = location.split_once("state=").unwrap();
        Begun {
            state: rest.split_once('&').unwrap().0.to_owned(),
            cookie: cookie.split_once(';').unwrap().0.to_owned(),
        }
    }

    async fn callback(&self, query: &str, cookie: &str) -> Response {
        self.get(&format!("{PATH}/callback?{query}"), cookie).await
    }

    /// Signs in; the cookie of the session.
    async fn session(&self, code: &str) -> String {
        let begun = self.begin("").await;
        session_of(&self.callback(&begun.query(code), &begun.cookie).await)
    }

    /// Refusal of a sign-in with the person of now.
    async fn refused(&self) -> String {
        let begun = self.begin("").await;
        let query = begun.query(&begun.state);
        let reply = self.callback(&query, &begun.cookie).await;
        assert_eq!(reply.status(), 403);
        let body: Value = reply.json().await.unwrap();
        assert_eq!(body["code"], "sign_in_refused");
        body["detail"].as_str().unwrap().to_owned()
    }

    async fn me(&self, session: &str) -> Value {
        let reply = self.get("/api/v1/me", session).await;
        assert_eq!(reply.status(), 200);
        reply.json().await.unwrap()
    }

    /// Role of a user, as administrators see it.
    async fn role_of(&self, email: &str) -> Value {
        let users = self.admin().await.get("/api/v1/users").await.json(200);
        let users = users.as_array().unwrap();
        let user = users.iter().find(|user| user["email"] == email).unwrap();
        user["role"].clone()
    }

    /// Details and names of the targets of entries of the audit log, oldest first.
    async fn audit(&self, action: &str) -> Vec<(Value, Value)> {
        let path = format!("/api/v1/audit?action={action}");
        let entries = self.admin().await.get(&path).await.json(200);
        let entries = entries.as_array().unwrap().iter().rev();
        let entries = entries.map(|it| (it["target"]["name"].clone(), it["details"].clone()));
        entries.collect()
    }
}

fn session_of(reply: &Response) -> String {
    assert_eq!(reply.status(), 303);
    let cookies = reply.headers().get_all("set-cookie").into_iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
    let session = cookies
        .find(|cookie| cookie.starts_with("labdata-session="))
        .unwrap();
    session.split_once(';').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_person_signs_in_with_the_highest_role_and_returns_to_the_page() {
    let lab = Lab::start("lab=member,guests=viewer", "false").await;
    let lab = lab.with_another_admin().await;
    lab.change(|ada| ada.groups = listed(&["guests", "lab"]));
    let about: Value = lab
        .get(&format!("{PATH}/about"), "")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(about, json!({ "url": PATH }));
    let begun = lab.begin("?return_to=/%23/tables%3Fname%3Dsample").await;
    let query = format!("{}&iss=https://id.example.org", begun.query("1"));
    let reply = lab.callback(&query, &begun.cookie).await;
    assert_eq!(reply.headers()["location"], "/#/tables?name=sample");
    assert_eq!(reply.headers()["cache-control"], "no-store");
    let session = session_of(&reply);
    let me = lab.me(&session).await;
    assert_eq!(me["user"]["email"], "ada@example.org");
    assert_eq!(me["user"]["role"], "member");
    assert_eq!(me["api_key"]["scopes"], json!(["read", "write"]));
    assert_eq!(lab.get("/api/v1/api-keys", &session).await.status(), 403);
}

#[tokio::test]
async fn people_without_a_role_an_address_or_a_user_are_refused_in_words() {
    let lab = Lab::start("lab=member", "example.com").await;
    lab.change(|it| it.groups = listed(&[]));
    assert!(lab.refused().await.contains("none of your groups"));
    lab.change(|it| it.groups = Groups::Missing);
    assert!(lab.refused().await.contains("LABDATA_OIDC_GROUPS_CLAIM"));
    lab.change(|it| it.groups = Groups::Omitted);
    assert!(lab.refused().await.contains("more groups than"));
    lab.change(|it| it.email = None);
    assert!(lab.refused().await.contains("verified"));
    lab.change(|it| it.email = Some("bob@example.org".to_owned()));
    assert!(lab.refused().await.contains("bob@example.org has no user"));
    let lost = Lab::start_in("nowhere", "lab=member", "false").await;
    assert!(lost.refused().await.contains("LABDATA_OIDC_ORGANIZATION"));
    let names: Vec<Value> = lab
        .audit("session.refused")
        .await
        .into_iter()
        .map(|(name, details)| {
            assert_eq!(details["by"], "identity_provider");
            assert!(details["reason"].is_string(), "{details}");
            name
        })
        .collect();
    // Of a person one refusal a minute is recorded.
    assert_eq!(names, ["ada@example.org", "ada-1", "bob@example.org"]);
}

#[tokio::test]
async fn a_user_is_made_for_a_domain_and_keeps_the_account() {
    let lab = Lab::start("lab=member", "example.com").await;
    let bob = |change: &dyn Fn(&mut Identity)| {
        lab.change(|it| {
            it.email = Some("bob@example.com".to_owned());
            it.subject = "bob-1".to_owned();
            change(it);
        });
    };
    bob(&|_| ());
    let me = lab.me(&lab.session("made").await).await;
    assert_eq!(
        (&me["user"]["name"], &me["user"]["role"]),
        (&json!("Ada"), &json!("member"))
    );
    let created = lab.audit("user.created").await;
    assert_eq!(created.len(), 1);
    assert_eq!(created[0].1["by"], "identity_provider");
    // The provider gives the address to somebody else.
    bob(&|it| it.subject = "eve-1".to_owned());
    assert!(lab.refused().await.contains("another account"));
    // Bob gets another address, which does not even count.
    bob(&|it| it.email = None);
    let again = lab.me(&lab.session("again").await).await;
    assert_eq!(again["user"]["id"], me["user"]["id"]);
    let path = format!("/api/v1/users/{}", me["user"]["id"].as_str().unwrap());
    let disabled = json!({"disabled": true});
    lab.admin().await.patch(&path, &disabled).await.json(200);
    assert!(lab.refused().await.contains("disabled"));
}

#[tokio::test]
async fn without_a_provider_there_is_nothing_to_begin() {
    let server = TestServer::start().await;
    let anybody = server.anonymous();
    assert_eq!(anybody.get(PATH).await.status, 404);
    assert_eq!(
        anybody.get(&format!("{PATH}/about")).await.json(200),
        json!({ "url": null })
    );
}
