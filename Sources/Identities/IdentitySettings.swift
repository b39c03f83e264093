/// Rules for nicks derived from display names.
public struct NickSettings: Equatable, Sendable {
    public enum Collision: String, Sendable, CaseIterable {
        case number, underscore
    }

    /// Appended to the nicks of upstream users.
    public var suffix: String
    /// Length limit in bytes of UTF-8.
    public var maxBytes: Int
    /// Replaces characters that are illegal in nicks.
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

/// The nick syntax of a front end.
package final class NickRules: Sendable {
    /// The casemapping.
    package let fold: @Sendable (String) -> String
    package let isLegal: @Sendable (String) -> Bool
    /// Whether clients may choose a legal nick. Does not apply to upstream users.
    package let mayBeTaken: @Sendable (String) -> Bool
    /// Equal for confusable nicks.
    package let skeleton: @Sendable (String) -> String

    package init(
        fold: @escaping @Sendable (String) -> String, isLegal: @escaping @Sendable (String) -> Bool,
        mayBeTaken: @escaping @Sendable (String) -> Bool = { _ in true },
        skeleton: @escaping @Sendable (String) -> String = { Confusables.skeleton($0) }
    ) {
        self.fold = fold
        self.isLegal = isLegal
        self.mayBeTaken = mayBeTaken
        self.skeleton = skeleton
    }
}

/// Settings for nicks, and for the upstream ids of IRC users.
package struct IdentitySettings {
    package var nicks: NickSettings
    package var rules: NickRules
    /// Seeds the stable upstream ids of IRC users, so that two installations never share one.
    package var instanceID: String
    /// Nicks that are never assigned.
    package var reserved: [String]
    /// Names of accounts, reserved for their owners.
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
