// What takes a good part of a second on purpose, and is done on other threads.

public import BridgeTypes
public import Digests

/// One password to be checked beside the loop, because that takes a good part of a second on purpose.
public struct PasswordCheck: Equatable, Sendable {
    public let client: ClientID
    /// Names this check when its verdict is told.
    public let attempt: UInt64
    let verifier: SCRAMVerifier
    let password: SecretBytes
    /// Iterations that any check takes at least, so that accounts cannot be told apart by time.
    let cost: Int

    /// Whether the password is the one. Blocks; call it on a thread that has nothing else to do.
    public func isCorrect() -> Bool { verifier.matches(password, costing: cost) }
}

/// One password to be hashed beside the loop, because that takes a good part of a second on purpose.
public struct PasswordHashing: Equatable, Sendable {
    public let client: ClientID
    /// Names this one when its answer is told.
    public let attempt: UInt64
    let password: SecretBytes
    let salt: [UInt8]
    let iterations: Int

    /// What is to be kept of the password. Blocks; call it on a thread that has nothing else to do.
    public func verifier() -> SCRAMVerifier {
        SCRAMVerifier(password: password, salt: salt, iterations: iterations)
    }
}

/// How a ``PasswordCheck`` ended.
public enum PasswordVerdict: Equatable, Sendable {
    case correct
    case wrong
    /// It was never made: too many wait already.
    case unavailable
}
