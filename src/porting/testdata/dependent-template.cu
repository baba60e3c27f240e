template <typename T, int N>
void f(T x) {
  Cast<T>::apply<N>(x);  //! error dependent-template //-> Cast<T>::template apply<N>(x);
  Cast<T>::template apply<N>(x);
  Cast<int>::apply<3>(x);
  Cast<T>::apply(x);
  bool b = a < c && d > (e);
  auto y = std::numeric_limits<T>::max();
}
