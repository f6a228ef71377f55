//! The macro that turns the clauses of a module into a suite.

/// Makes a suite of the clauses of a module: each clause as a documented `pub async fn`, and a
/// macro of the suite's name that makes one test of each clause for a harness.
///
/// The first item names the module, from the root of the crate, and the suite where its name is
/// another. A clause takes one [`Fixture`](crate::Fixture): a lab, or the harness as [`Itself`](crate::Itself).
macro_rules! suite {
    (use $suite:ident; $($clauses:tt)+) => {
        $crate::suite! { @ ($) [$suite] $suite $($clauses)+ }
    };
    (use $area:ident::$suite:ident; $($clauses:tt)+) => {
        $crate::suite! { @ ($) [$area::$suite] $suite $($clauses)+ }
    };
    (use $($module:ident)::+ as $suite:ident; $($clauses:tt)+) => {
        $crate::suite! { @ ($) [$($module)::+] $suite $($clauses)+ }
    };
    // `$d` is a dollar sign: the transcriber cannot write one of the inner macro's otherwise.
    (
        @ ($d:tt) [$($module:ident)::+] $suite:ident
        $(
            $(#[$doc:meta])+
            async fn $clause:ident($fixture:ident: $Fixture:ty $(,)?) $body:block
        )+
    ) => {
        $(
            $(#[$doc])+
            pub async fn $clause($fixture: $Fixture) $body
        )+

        #[doc = concat!("Makes one test of each clause of `", stringify!($($module)::+), "`.")]
        #[macro_export]
        macro_rules! $suite {
            ($d harness:ty) => {
                $crate::$suite! { $d harness, tokio::test }
            };
            ($d harness:ty, $d test:meta) => {
                mod $suite {
                    #[allow(unused_imports, reason = "the harness may be named by its path")]
                    use super::*;
                    use $crate::$($module)::+ as clauses;

                    $(
                        #[$d test]
                        async fn $clause() {
                            let harness = <$d harness as $crate::Harness>::fresh().await;
                            let fixture = <_ as $crate::Fixture<$d harness>>::over(harness).await;
                            clauses::$clause(&fixture).await;
                        }
                    )+
                }
            };
        }
    };
}
pub(crate) use suite;
