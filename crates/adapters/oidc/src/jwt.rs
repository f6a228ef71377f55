//! ID tokens: JSON Web Tokens in their compact form.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use labdata_domain::people::{
    oidc::{Groups, IdTokenClaims},
    tenancy::{MAX_EMAIL_LENGTH, MAX_USER_NAME_LENGTH, check_email},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::keys::{Algorithm, Jwk};

/// Maximum length of a token.
const MAX_TOKEN: usize = 64 << 10;

/// A token whose signature is not checked yet.
pub(crate) struct Unverified<'t> {
    /// Header and payload as they were sent, which the signature covers.
    signed: &'t str,
    signature: Vec<u8>,
    payload: Vec<u8>,
    algorithm: Algorithm,
    /// Id of the key that signed it, if it names one.
    pub(crate) key_id: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that a reader has to know; none is known here.
    crit: Option<Value>,
}

impl<'t> Unverified<'t> {
    /// Reads a token; `None` for one that is malformed, or signed in a way that is not accepted.
    pub(crate) fn read(token: &'t str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        // RFC 7515, section 4.1.11: a token with extensions that the reader does not know is invalid.
        if header.crit.is_some() {
            return None;
        }
        Some(Self {
            signed,
            signature: decode(signature)?,
            payload: decode(payload)?,
            algorithm: Algorithm::from_name(&header.alg)?,
            key_id: header.kid,
        })
    }

    /// The claims, if one of the keys signed them.
    pub(crate) fn verify(&self, keys: &[Jwk]) -> Option<Claims> {
        let candidates = keys.iter().filter(|key| key.fits(self.key_id.as_deref()));
        let mut signers =
            candidates.filter(|key| key.verifies(self.algorithm, self.signed, &self.signature));
        signers.next()?;
        serde_json::from_slice(&self.payload).ok().map(Claims)
    }
}

/// Claims about a person.
pub(crate) struct Claims(pub(crate) Map<String, Value>);

impl Claims {
    /// The claims that are checked; `None` if a required one is missing or malformed.
    pub(crate) fn id_token(&self) -> Option<IdTokenClaims> {
        let text = |name: &str| self.0.get(name).and_then(Value::as_str);
        let audiences = match self.0.get("aud")? {
            // RFC 7519, section 4.1.3: a single audience may be a text.
            Value::String(one) => vec![one.clone()],
            Value::Array(all) => all
                .iter()
                .map(|one| one.as_str().map(ToOwned::to_owned))
                .collect::<Option<_>>()?,
            _ => return None,
        };
        Some(IdTokenClaims {
            issuer: text("iss")?.to_owned(),
            subject: text("sub")?.to_owned(),
            audiences,
            authorized_party: match self.0.get("azp") {
                None | Some(Value::Null) => None,
                Some(party) => Some(party.as_str()?.to_owned()),
            },
            expires_at: self.0.get("exp")?.as_i64()?,
            issued_at: self.0.get("iat")?.as_i64()?,
            nonce: text("nonce").map(ToOwned::to_owned),
        })
    }

    /// E-mail address, if the provider says that it is verified.
    pub(crate) fn verified_email(&self) -> Option<String> {
        let email = self.0.get("email").and_then(Value::as_str)?;
        let is_fit = email.len() <= MAX_EMAIL_LENGTH && check_email(email).is_ok();
        (is_fit && self.says("email_verified")).then(|| email.to_owned())
    }

    /// E-mail address of Entra ID, which has a separate claim for addresses in a domain that the tenant owns.
    pub(crate) fn email_of_own_domain(&self) -> Option<String> {
        if self.0.contains_key("email_verified") || !self.says("xms_edov") {
            return None;
        }
        let verified = json!({"email": self.0.get("email")?, "email_verified": true});
        Self(verified.as_object()?.clone()).verified_email()
    }

    /// Returns whether a claim is true. Some providers write it as a text.
    fn says(&self, claim: &str) -> bool {
        match self.0.get(claim) {
            Some(Value::Bool(is_true)) => *is_true,
            Some(Value::String(text)) => text == "true",
            _ => false,
        }
    }

    /// Name for people.
    pub(crate) fn name(&self) -> Option<String> {
        let name = self.0.get("name").and_then(Value::as_str)?;
        let letters = name.trim().chars().filter(|letter| !letter.is_control());
        let name: String = letters.take(MAX_USER_NAME_LENGTH).collect();
        (!name.is_empty()).then_some(name)
    }

    /// Groups of a claim: a list of texts, or one text. A dot leads into an object where no claim has the name.
    pub(crate) fn groups(&self, claim: &str) -> Groups {
        match self.find(claim) {
            Some(Value::String(one)) => Groups::Listed(vec![one.clone()]),
            Some(Value::Array(all)) => {
                let texts = all.iter().filter_map(Value::as_str);
                Groups::Listed(texts.map(ToOwned::to_owned).collect())
            }
            _ if self.is_elsewhere(claim) => Groups::Omitted,
            _ => Groups::Missing,
        }
    }

    fn find(&self, claim: &str) -> Option<&Value> {
        // A name with dots may be that of one claim: some providers name theirs by URLs.
        if let Some(found) = self.0.get(claim) {
            return Some(found);
        }
        let mut parts = claim.split('.');
        let mut found = self.0.get(parts.next()?)?;
        for part in parts {
            found = found.as_object()?.get(part)?;
        }
        Some(found)
    }

    /// Returns whether the provider says that the claim is too long for a token: it names another source for it
    /// (OpenID Connect Core 1.0, section 5.6.2), which has to be asked with rights that the platform does not have.
    fn is_elsewhere(&self, claim: &str) -> bool {
        let sources = self.0.get("_claim_names").and_then(Value::as_object);
        sources.is_some_and(|sources| sources.contains_key(claim)) || self.says("hasgroups")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(value: &Value) -> Claims {
        Claims(value.as_object().unwrap().clone())
    }

    #[test]
    fn groups_are_a_list_or_a_text_at_the_end_of_a_path() {
        let listed = |groups: &[&str]| {
            Groups::Listed(groups.iter().map(|&group| group.to_owned()).collect())
        };
        for (claim, value, groups) in [
            ("groups", json!({"groups": ["a", "b"]}), listed(&["a", "b"])),
            ("groups", json!({"groups": "a"}), listed(&["a"])),
            ("groups", json!({"groups": []}), listed(&[])),
            ("groups", json!({"groups": ["a", 1]}), listed(&["a"])),
            ("groups", json!({}), Groups::Missing),
            ("groups", json!({"groups": null}), Groups::Missing),
            ("a.roles", json!({"a": {"roles": ["b"]}}), listed(&["b"])),
            (
                "a.roles",
                json!({"a.roles": ["c"], "a": {"roles": ["b"]}}),
                listed(&["c"]),
            ),
            ("a.roles", json!({"a": "roles"}), Groups::Missing),
            (
                "groups",
                json!({"_claim_names": {"groups": "src1"}}),
                Groups::Omitted,
            ),
            ("groups", json!({"hasgroups": true}), Groups::Omitted),
            (
                "groups",
                json!({"_claim_names": {"other": "src1"}}),
                Groups::Missing,
            ),
        ] {
            assert_eq!(claims(&value.clone()).groups(claim), groups, "{value}");
        }
    }

    #[test]
    fn an_address_of_an_own_domain_counts_where_nothing_is_said_of_verification() {
        let email = |value| claims(&value).email_of_own_domain();
        let ada = json!({"email": "ada@example.org", "xms_edov": true});
        assert_eq!(email(ada).as_deref(), Some("ada@example.org"));
        for other in [
            json!({"email": "ada@example.org"}),
            json!({"email": "ada@example.org", "xms_edov": false}),
            json!({"email": "ada@example.org", "xms_edov": true, "email_verified": false}),
            json!({"email": "no address", "xms_edov": true}),
            json!({"xms_edov": true}),
        ] {
            assert_eq!(email(other.clone()), None, "{other}");
        }
    }

    #[test]
    fn a_name_has_no_control_characters() {
        let name = |name: &str| claims(&json!({ "name": name })).name();
        assert_eq!(name(" Ada\0 L. ").as_deref(), Some("Ada L."));
        assert_eq!(name(" \n"), None);
    }
}
