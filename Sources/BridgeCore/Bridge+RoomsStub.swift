extension Bridge {
    /// Asks a backend which rooms there are, unless it was asked a moment ago; the answer is kept in `backendRooms`.
    func requestRooms(_ backend: String) {}
}
