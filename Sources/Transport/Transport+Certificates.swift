import WireBytes

// Certificates in force: read once for all connections, and again when their files change.

extension Transport {
    // MARK: - Listeners

    func makeSecurity(_ settings: TLSServerSettings) throws(TransportError) -> ListenerSecurity {
        do throws(TLSSetupError) {
            return ListenerSecurity(settings: settings, context: try TLSContext(server: settings))
        } catch {
            throw .tlsUnusable(error)
        }
    }

    /// Reads a listener's certificate, key and authorities again. New handshakes use them; connections live on with what
    /// they have. Does nothing for a listener without TLS.
    ///
    /// - Throws: why the new ones cannot be used; the old ones stay in force.
    public func reloadCertificates(_ id: ListenerID) throws(TLSSetupError) {
        guard let security = listeners[id]?.security else { return }
        let context = try TLSContext(server: security.settings)
        listeners[id]?.security?.context = context
    }

    func watchCertificateFiles() {
        if timers[.certificates] == nil { timers.set(.certificates, at: now + TLSLimits.fileCheckInterval) }
    }

    /// Looks whether files have changed. Changes are taken up when they have rested for one interval, so that a certificate
    /// is not read while its key is still the old one.
    func checkCertificateFiles() {
        var isWatching = false
        for (id, listener) in listeners {
            guard var security = listener.security, security.watchesFiles else { continue }
            isWatching = true
            let marks = security.context.files.renewed
            if marks == security.context.files || marks == security.refused {
                security.suspected = nil
            } else if marks != security.suspected {
                security.suspected = marks
            } else {
                security.suspected = nil
                do throws(TLSSetupError) {
                    security.context = try TLSContext(server: security.settings)
                    security.refused = nil
                    tls.reports.append((.listener(id), nil))
                } catch {
                    security.refused = marks
                    tls.reports.append((.listener(id), error))
                }
            }
            listeners[id]?.security = security
        }
        if isWatching { watchCertificateFiles() }
    }

    // MARK: - Outgoing connections

    /// The context for `settings`: the one that other connections have, or a new one when files have changed.
    func clientContext(_ settings: TLSClientSettings) throws(TLSSetupError) -> TLSContext {
        var shared = settings
        shared.serverName = nil
        shared.pins = []
        let known = tls.clientContexts[shared]
        let marks = known?.files.renewed
        if let known, marks == known.files || marks == tls.refusedFiles[shared] { return known }
        do throws(TLSSetupError) {
            let context = try TLSContext(client: shared)
            tls.clientContexts[shared] = context
            tls.refusedFiles[shared] = nil
            if known != nil { tls.reports.append((.client(files: shared.files), nil)) }
            return context
        } catch {
            guard let known else { throw error }
            tls.refusedFiles[shared] = marks
            tls.reports.append((.client(files: shared.files), error))
            return known
        }
    }

    func deliverCertificateReports() {
        guard !tls.reports.isEmpty else { return }
        let reports = tls.reports
        tls.reports = []
        for (user, error) in reports { delegate?.certificatesChanged(user, error: error, transport: self) }
    }
}
