import Rooms

/// A conversation, as one of its parties sees it.
struct PrivateView: Equatable {
    var pair: PrivateConversations.Pair
    /// The account that looks, folded.
    var own: String
    /// The other's nick.
    var partner: String
}
