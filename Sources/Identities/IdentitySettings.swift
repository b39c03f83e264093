/// How nicks are made from display names.
public struct NickSettings: Equatable, Sendable {
    public enum Collision: String, Sendable, CaseIterable {
        case number, underscore
    }

    /// Appended to the nicks of people upstream.
    public var suffix: String
    /// Bytes of UTF-8.
    public var maxBytes: Int
    /// Stands for characters that IRC cannot have.
    public var invalid: String
    public var collision: Collision
    /// false: ASCII only.
    public var utf8: Bool

    public init(
        suffix: String = "", maxBytes: Int = 30, invalid: String = "-", collision: Collision = .number,
        utf8: Bool = true
    ) {
        self.suffix = suffix
        self.maxBytes = maxBytes
        self.invalid = invalid
        self.collision = collision
        self.utf8 = utf8
    }
}

/// What a front end takes for a nick.
package final class NickRules: Sendable {
    /// Equal for nicks that are the same nick.
    package let fold: @Sendable (String) -> String
    package let isLegal: @Sendable (String) -> Bool
    /// Whether somebody who connects may take a legal one. People upstream are given theirs.
    package let mayBeTaken: @Sendable (String) -> Bool

    package init(
        fold: @escaping @Sendable (String) -> String, isLegal: @escaping @Sendable (String) -> Bool,
        mayBeTaken: @escaping @Sendable (String) -> Bool = { _ in true }
    ) {
        self.fold = fold
        self.isLegal = isLegal
        self.mayBeTaken = mayBeTaken
    }
}

/// What decides who may have which nick, and as whom our people are known upstream.
package struct IdentitySettings {
    package var nicks: NickSettings
    package var rules: NickRules
    /// Part of our people's ids upstream, so that two installations never share a person.
    package var instanceID: String
    /// Nicks that nobody gets.
    package var reserved: [String]
    /// Names of accounts: kept for those who log in to them.
    package var accounts: [String]

    package init(
        nicks: NickSettings, rules: NickRules, instanceID: String, reserved: [String], accounts: [String]
    ) {
        self.nicks = nicks
        self.rules = rules
        self.instanceID = instanceID
        self.reserved = reserved
        self.accounts = accounts
    }
}
