import IRCProtocol
import Rooms

/// What the capabilities of a new session begin with.
struct CapabilityOffer {
    var available: IRCCapabilitySet
    /// What stands behind `name=`.
    var values: [IRCCapability: String]

    /// What decides about it. Few different ones exist, so that sessions share the values.
    struct Grounds: Hashable {
        var mechanisms: [SASLMechanism]
        var registers: Bool
        var hasAccounts: Bool
        var sts: STSAnnouncement?
        var relays: Bool
    }
}

/// What was offered so far, by what decides about it.
final class CapabilityOffers {
    private let values: [IRCCapability: String]
    /// Whether an account may be made before the client is let in.
    let registersBeforeConnect: Bool
    private var known: [CapabilityOffer.Grounds: CapabilityOffer] = [:]

    /// - Parameter values: those that are the same for everybody.
    init(values: [IRCCapability: String], registersBeforeConnect: Bool) {
        self.values = values
        self.registersBeforeConnect = registersBeforeConnect
    }

    subscript(grounds: CapabilityOffer.Grounds) -> CapabilityOffer {
        if let known = known[grounds] { return known }
        var offer = CapabilityOffer(available: Self.standard, values: values)
        if grounds.hasAccounts { offer.available.formUnion(Self.accountCapabilities) }
        if !grounds.mechanisms.isEmpty {
            offer.available.insert(.sasl)
            offer.values[.sasl] = grounds.mechanisms.map(\.rawValue).joined(separator: ",")
        }
        if let sts = grounds.sts {
            offer.available.insert(.sts)
            offer.values[.sts] = sts.text
        }
        if grounds.relays {
            offer.available.insert(.relaymsg)
            offer.values[.relaymsg] = RelayedName.separators
        }
        if grounds.registers {
            offer.available.insert(.accountRegistration)
            offer.values[.accountRegistration] =
                registersBeforeConnect ? "before-connect,custom-account-name" : "custom-account-name"
        }
        known[grounds] = offer
        return offer
    }

    /// What this bridge offers to everybody: every capability in the table that something here gives life to.
    private static let standard: IRCCapabilitySet = {
        var offered = IRCCapabilitySet.all
        // Offered by the grounds, where there is something.
        for absent in [IRCCapability.sasl, .accountRegistration, .sts, .relaymsg] { offered.remove(absent) }
        return offered.subtracting(accountCapabilities)
    }()

    /// What has a meaning only where people can log in.
    private static let accountCapabilities: IRCCapabilitySet = [.accountNotify, .selfMessage]
}
