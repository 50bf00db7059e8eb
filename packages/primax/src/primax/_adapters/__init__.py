"""The reference's conventions for jaxprs, traces and rules, built on the extension API."""
