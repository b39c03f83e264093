/// What the IRC server wants of backends' accounts; the hub carries it out with the rooms' wishes.
package final class ServerWishes {
    private var list: [ServerWish] = []

    package func append(_ wish: ServerWish) { list.append(wish) }

    package func take() -> [ServerWish] {
        guard !list.isEmpty else { return [] }
        defer { list = [] }
        return list
    }
}

package enum ServerWish {
    /// Ask which rooms there are.
    case rooms(of: String)
    /// Try at once what waits for its time.
    case retryLogin(at: String)
}
