//! The models that runs may use.

use crate::refusal::{ErrorCode, Refuse};

/// Models that runs may use, from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// Model of runs that name none.
    pub default: Option<String>,
    /// Models that a run may name besides it.
    pub allowed: Vec<String>,
}

/// Reason why there is no model for a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelRefusal {
    /// No model is set.
    #[error("no model is set: the operator has to set LABDATA_LLM_MODEL")]
    NoneSet,
    /// The model is not one of those that are allowed.
    #[error("\"{model}\" is not a model of this platform; {}", list(.allowed))]
    NotAllowed {
        /// The model that was asked for.
        model: String,
        /// The models that there are.
        allowed: Vec<String>,
    },
}

impl Refuse for ModelRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoneSet => ErrorCode::AgentNotConfigured,
            Self::NotAllowed { .. } => ErrorCode::ModelNotAllowed,
        }
    }
}

impl ModelChoice {
    /// Chooses the model of a run that asks for `requested`, or for none.
    ///
    /// # Errors
    /// [`ModelRefusal`].
    pub fn choose(&self, requested: Option<&str>) -> Result<&str, ModelRefusal> {
        let Some(requested) = requested else {
            return self.models().next().ok_or(ModelRefusal::NoneSet);
        };
        self.models()
            .find(|model| *model == requested)
            .ok_or_else(|| ModelRefusal::NotAllowed {
                model: requested.chars().take(MAX_SHOWN_NAME).collect(),
                allowed: self.models().map(str::to_owned).collect(),
            })
    }

    /// All models, the default one first.
    fn models(&self) -> impl Iterator<Item = &str> {
        self.default
            .iter()
            .chain(
                self.allowed
                    .iter()
                    // Operators may list the default as well.
                    .filter(|name| Some(*name) != self.default.as_ref()),
            )
            .map(String::as_str)
    }
}

/// Number of characters of an unknown model's name that a refusal repeats.
const MAX_SHOWN_NAME: usize = 100;

fn list(models: &[String]) -> String {
    if models.is_empty() {
        return "it has none".to_owned();
    }
    format!("it has {}", models.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(default: Option<&str>, allowed: &[&str]) -> ModelChoice {
        ModelChoice {
            default: default.map(str::to_owned),
            allowed: allowed.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_run_has_the_default_model_or_one_of_the_list() {
        let models = choice(Some("small"), &["large", "small"]);
        assert_eq!(models.choose(None), Ok("small"));
        assert_eq!(models.choose(Some("large")), Ok("large"));
        assert_eq!(models.choose(Some("small")), Ok("small"));
        assert_eq!(choice(None, &["large"]).choose(None), Ok("large"));
    }

    #[test]
    fn any_other_model_is_refused() {
        let models = choice(Some("small"), &["large", "small"]);
        let refusal = models.choose(Some("Large")).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "\"Large\" is not a model of this platform; it has small, large"
        );
        let refusal = choice(None, &[]).choose(Some("x")).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "\"x\" is not a model of this platform; it has none"
        );
        let refusal = choice(None, &[]).choose(None).unwrap_err();
        assert_eq!(refusal, ModelRefusal::NoneSet);
    }
}
