//! Proxies, the program, the application, the client.

pub(crate) mod application;
pub(crate) mod folder;
pub(crate) mod programs;
pub(crate) mod setup;
pub(crate) mod site;
pub(crate) mod tidegate;

#[path = "../../it/kit/client.rs"]
#[expect(
    dead_code,
    reason = "shared with the other test program, which needs all of it"
)]
mod client;

pub(crate) use client::{Reply, post};
pub(crate) use setup::{FailureMode, Setup};
pub(crate) use site::{Site, exchange, head};

/// Makes a test for each setup of a list: `with_each!(behaviour: nginx Nginx, caddy Caddy)` makes
/// tests that call the function `behaviour` of this module.
macro_rules! with_each {
    ($behaviour:ident: $($name:ident $setup:ident),+) => {
        mod $behaviour {
            use crate::kit::Setup;
            $(
                #[test]
                fn $name() {
                    super::$behaviour(Setup::$setup);
                }
            )+
        }
    };
}

/// Makes a test for each setup.
macro_rules! with_all {
    ($behaviour:ident) => {
        with_each!(
            $behaviour: nginx Nginx, haproxy Haproxy, caddy Caddy, caddy_short CaddyShort,
            traefik_forward_auth TraefikForwardAuth, traefik_plugin TraefikPlugin
        );
    };
}

/// Makes a test for each setup with a setting for an unreachable Tidegate.
macro_rules! with_those_that_choose {
    ($behaviour:ident) => {
        with_each!(
            $behaviour: nginx Nginx, haproxy Haproxy, caddy Caddy, traefik_plugin TraefikPlugin
        );
    };
}
