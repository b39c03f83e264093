import IRCProtocol
import Rooms

/// The initial capabilities of a session.
struct CapabilityOffer {
    var available: IRCCapabilitySet
    /// The values behind `name=`.
    var values: [IRCCapability: String]

    /// The conditions of an offer. Few combinations exist, so sessions share the values.
    struct Grounds: Hashable {
        var mechanisms: [SASLMechanism]
        var registers: Bool
        var hasAccounts: Bool
        var sts: STSAnnouncement?
        var relays: Bool
    }
}

/// The offers made so far, by their conditions.
final class CapabilityOffers {
    private let values: [IRCCapability: String]
    /// Whether an account may be registered before the connection is.
    let registersBeforeConnect: Bool
    private var known: [CapabilityOffer.Grounds: CapabilityOffer] = [:]

    /// - Parameter values: those that all offers have in common.
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

    /// Capabilities for all clients: those in the table that a feature of the bridge supports.
    private static let standard: IRCCapabilitySet = {
        var offered = IRCCapabilitySet.all
        // Offered by the grounds, where they apply.
        for absent in [IRCCapability.sasl, .accountRegistration, .sts, .relaymsg] { offered.remove(absent) }
        return offered.subtracting(accountCapabilities)
    }()

    /// Capabilities that have an effect only with accounts.
    private static let accountCapabilities: IRCCapabilitySet = [.accountNotify, .selfMessage]
}
