import BridgeCore
import BridgeTypes
import ChatModel
import HTTPProtocol
import JSONText
import Transport
import WireBytes

/// The state of the bridge as the admin socket, /status.json and the status page give it.
struct StatusDocument {
    var status: BridgeStatus
    let readiness: Readiness
    let certificates: [CertificateEnd]
    let troubles: [StatusTrouble]
    let mirrors: [MirrorStatus]
    /// Without the limit of ``limitClients(to:)``.
    private let clientCount: Int

    init(_ host: any BridgeHost, store: StoreDriver?, reload: ConfigurationReload?, _ transport: Transport) {
        let bridge = host.bridge
        status = bridge.status(now: Now(transport))
        clientCount = status.clients.count
        readiness = Readiness(bridge, store)
        certificates = transport.certificateEnds
        mirrors = host.mirrorStatus
        troubles = StatusTrouble.all(
            status, certificates: certificates, mirrors: mirrors, refusal: reload?.standing.refusal)
    }

    /// Keeps the clients that connected first.
    mutating func limitClients(to most: Int) { status.limitClients(to: most) }

    /// The members of the object, for documents that have more of them.
    func appendMembers(to writer: inout JSONWriter) {
        status.appendMembers(to: &writer)
        writer.key("client_count")
        writer.integer(Int64(clientCount))
        writer.key("ready")
        writer.bool(readiness.isReady)
        writer.texts("reasons", readiness.reasons)
        writer.key("troubles")
        writer.beginArray()
        for trouble in troubles { trouble.append(to: &writer) }
        writer.endArray()
        writer.key("mirrors")
        writer.beginArray()
        for mirror in mirrors { mirror.append(to: &writer) }
        writer.endArray()
        writer.key("certificates")
        writer.beginArray()
        for certificate in certificates {
            writer.beginObject()
            writer.key("listener")
            writer.string(certificate.listener)
            writer.key("ends_at")
            writer.time(certificate.at)
            writer.endObject()
        }
        writer.endArray()
    }
}

extension JSONWriter {
    mutating func texts(_ key: String, _ texts: [String]) {
        self.key(text: key)
        beginArray()
        for text in texts { string(text) }
        endArray()
    }
}

/// When the certificate of a listener ends.
struct CertificateEnd: Equatable {
    /// The address of the listener as it is configured.
    var listener: String
    var at: ChatTimestamp
}

extension Transport {
    /// Of the IRC and HTTP listeners of this loop, each address once.
    var certificateEnds: [CertificateEnd] {
        guard let router = delegate as? ConnectionRouter else { return [] }
        var ends: [String: Int64] = [:]
        for listener in securedListeners {
            guard let label = router.label(of: listener), let at = certificateExpiry(listener) else { continue }
            ends[label] = min(ends[label] ?? .max, at)
        }
        return ends.sorted { $0.key < $1.key }.map {
            CertificateEnd(listener: $0.key, at: ChatTimestamp(milliseconds: $0.value * 1000))
        }
    }
}
