// Key derivation, which by design takes a large part of a second and runs on other threads.

public import BridgeTypes
public import Digests

/// A password check for another thread.
public struct PasswordCheck: Equatable, Sendable {
    public let client: ClientID
    /// Identifies the check in its verdict.
    public let attempt: UInt64
    let verifier: SCRAMVerifier
    let password: SecretBytes
    /// Minimum iterations of the check, so that timing does not reveal an account.
    let cost: Int

    /// Whether the password matches. Blocks: call it on a worker thread.
    public func isCorrect() -> Bool { verifier.matches(password, costing: cost) }
}

/// A password hashing for another thread.
public struct PasswordHashing: Equatable, Sendable {
    public let client: ClientID
    /// Identifies the hashing in its result.
    public let attempt: UInt64
    let password: SecretBytes
    let salt: [UInt8]
    let iterations: Int

    /// The hash to be stored. Blocks: call it on a worker thread.
    public func verifier() -> SCRAMVerifier {
        SCRAMVerifier(password: password, salt: salt, iterations: iterations)
    }
}

/// The outcome of a ``PasswordCheck``.
public enum PasswordVerdict: Equatable, Sendable {
    case correct
    case wrong
    /// Not run: too many checks are pending.
    case unavailable
}
