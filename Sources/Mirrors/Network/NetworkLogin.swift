import Digests
import IRCProtocol
import WireBytes

/// The client's side of SASL in one connection.
///
/// Source: IRCv3 sasl-3.1, sasl-3.2; RFC 4616; RFC 7677; RFC 4422, appendix A.
struct NetworkLogin {
    enum Step: Equatable {
        /// Parameters of AUTHENTICATE.
        case send([String])
        case needMoreData
        /// A part of a sentence, without secrets.
        case failed(String)
    }

    private enum Exchange {
        case plain(user: String, password: MirrorSecret)
        case external
        case scram(SCRAMClientExchange, Stage)
    }

    /// Of SCRAM, by what the server is to send.
    private enum Stage { case invitation, challenge, signature, nothing }

    /// Bytes of a challenge in base64.
    private static let maxChallengeBytes = 4096

    let mechanism: SASLMechanism
    private var exchange: Exchange
    private var encoded = ""

    /// Nil: there is no login.
    ///
    /// - Parameter randomness: `SCRAMClientExchange.nonceByteCount` fresh bytes.
    init?(_ login: IRCNetworkSettings.Login, randomness: [UInt8]) {
        switch login {
        case .none: return nil
        case .plain(let user, let password):
            (mechanism, exchange) = (.plain, .plain(user: user, password: password))
        case .scramSHA256(let user, let password):
            let scram = SCRAMClientExchange(name: user, password: SecretBytes(password.bytes), randomness: randomness)
            (mechanism, exchange) = (.scramSHA256, .scram(scram, .invitation))
        case .external: (mechanism, exchange) = (.external, .external)
        }
    }

    /// - Parameter list: the value of the capability; nil or empty: the server does not say what it knows.
    func isOffered(in list: String?) -> Bool {
        guard let list, !list.isEmpty else { return true }
        return list.split(separator: ",").contains { $0.uppercased() == mechanism.rawValue }
    }

    /// Whether a success may be believed: the server has proven that it knows the password, where it can.
    var isProven: Bool {
        if case .scram(_, let stage) = exchange { return stage == .nothing }
        return true
    }

    /// Takes the parameter of an AUTHENTICATE of the server.
    mutating func received(_ param: String) -> Step {
        guard param.utf8.count <= IRCSASLExchange.chunkBytes, encoded.utf8.count <= Self.maxChallengeBytes else {
            return .failed("the network's answer is too long")
        }
        if param != "+" { encoded += param }
        if param.utf8.count == IRCSASLExchange.chunkBytes { return .needMoreData }
        guard let bytes = Base64.decode(encoded) else { return .failed("the network's answer is no base64") }
        encoded = ""
        switch exchange {
        case .plain(let user, let password):
            return .send(IRCSASLExchange.chunks(of: [0] + Array(user.utf8) + [0] + password.bytes))
        case .external: return .send(IRCSASLExchange.chunks(of: []))
        case .scram(var scram, let stage):
            do throws(SCRAMServerFailure) {
                switch stage {
                case .invitation:
                    exchange = .scram(scram, .challenge)
                    return .send(IRCSASLExchange.chunks(of: scram.first))
                case .challenge:
                    let proof = try scram.respond(to: bytes)
                    exchange = .scram(scram, .signature)
                    return .send(IRCSASLExchange.chunks(of: proof))
                case .signature:
                    try scram.verify(bytes)
                    exchange = .scram(scram, .nothing)
                    return .send(["+"])
                case .nothing: return .failed("the network goes on behind the end")
                }
            } catch {
                return .failed(Self.sentence(error))
            }
        }
    }

    private static func sentence(_ failure: SCRAMServerFailure) -> String {
        switch failure {
        case .malformed, .extensionRequired, .nonceDiffers: "the network's answer is not SCRAM-SHA-256"
        case .iterationsOutOfRange: "the network asks for a number of iterations out of bounds"
        case .refused: "the network refuses the password"
        case .wrongSignature: "the network cannot prove that it knows the password"
        }
    }
}
