//! Which services are offered when a graph has changed: those whose server is there and no bridge of ours or others.

use std::collections::BTreeMap;

use anyhow::Result;

use super::bridge::Bridge;
use super::origins::{Origins, Place};
use super::services::Proxy;
use super::site::Site;

impl Bridge {
    /// Offers the services whose server has come and withdraws those whose server is gone.
    pub(super) fn update_services(&mut self) {
        let mut own = BTreeMap::new();
        for proxy in &mut self.services {
            let rule = &proxy.rule;
            let source: Place = (rule.from_domain, rule.from_name.clone());
            let target: Place = (rule.to_domain, rule.to_name.clone());
            let site = &self.sites[&rule.from_domain];
            let before = self.registry.of_service(&source);
            let offered =
                serves(proxy, site, before.as_ref(), &target).and_then(|there| proxy.offer(there));
            if let Err(error) = offered {
                self.unsettled = true;
                tracing::warn!(service = proxy.label(), %error, "cannot offer; will try again");
            }
            if proxy.is_up() {
                let mut origins: Origins = before.unwrap_or_default();
                origins.insert(source);
                own.insert(target, origins);
            }
        }
        self.registry.set_own_services(own);
    }
}

/// Whether calls would reach a server, and not come back to where they are offered by way of other bridges.
fn serves(proxy: &Proxy, site: &Site, before: Option<&Origins>, target: &Place) -> Result<bool> {
    if !proxy.has_server()? {
        return Ok(false);
    }
    match before {
        Some(places) if !places.contains(target) => Ok(true),
        None if site.bridges.is_empty() => Ok(true),
        Some(_) | None => has_real_server(site, &proxy.rule.from_name),
    }
}

/// Whether a node that is no bridge offers a service.
fn has_real_server(site: &Site, name: &str) -> Result<bool> {
    for (node, namespace) in site.domain.nodes()? {
        let is_bridge =
            node == site.node || site.bridges.contains(&(node.clone(), namespace.clone()));
        if !is_bridge {
            let services = site.domain.services_of(&node, &namespace)?;
            if services.iter().any(|(service, _)| service == name) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
