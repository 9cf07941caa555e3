"""Language models behind `mragaudit.protocols.Backend`; each module is one backend, loaded by the registry."""
